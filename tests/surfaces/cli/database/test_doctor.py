"""`perdure doctor`: for people, for scripts, and its exit code."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from datetime import UTC, datetime
from typing import Any

from tests.support.builders.gate_requests import claims_of
from tests.support.builders.jobs import MINUTE, apply, enqueue, show
from tests.support.databases.behind import query
from tests.surfaces.conftest import Arrange, Cli, run_cli

from perdure.clock import SystemClock
from perdure.domain.jobs import transition
from perdure.domain.jobs.ids import JobId
from perdure.domain.jobs.states import Reason
from perdure.domain.operate.audit import By
from perdure.domain.schedule import Schedule
from perdure.storage.port import Store
from perdure.storage.schedules import Timed
from perdure.surfaces.cli.exits import Exit


def test_a_problem_is_reported_by_the_exit_code(cli: Cli, arrange: Arrange[Any]) -> None:
    arrange(enqueue)
    answer = cli("doctor", "--json")
    assert (answer.code, answer.json["healthy"]) == (Exit.UNHEALTHY, False)
    [queues] = [finding for finding in answer.json["findings"] if finding["check"] == "queues"]
    assert (queues["severity"], bool(queues["advice"])) == ("problem", True)
    plain = cli("doctor")
    assert plain.code == Exit.UNHEALTHY
    assert "no worker serves 'default'" in " ".join(plain.out.split())
    assert "→ start a worker" in plain.out


def test_warnings_alone_are_no_failure(tmp_path: Any) -> None:
    url = f"sqlite:///{tmp_path / 'perdure.db'}"
    run_cli("migrate", "--url", url)
    answer = run_cli("doctor", "--url", url, "--json")
    assert (answer.code, answer.json["healthy"]) == (Exit.OK, True)
    assert any(finding["severity"] == "warning" for finding in answer.json["findings"])


def test_a_database_that_cannot_be_reached_is_the_one_finding(tmp_path: Any) -> None:
    answer = run_cli("doctor", "--url", f"sqlite:///{tmp_path / 'none.db'}", "--json")
    assert answer.code == Exit.UNHEALTHY
    [finding] = answer.json["findings"]
    assert (finding["check"], finding["severity"]) == ("database", "problem")


def test_a_bad_lease_is_refused(cli: Cli) -> None:
    answer = cli("doctor", "--lease", "soon", "--json")
    assert (answer.code, answer.error["field"]) == (Exit.USAGE, "--lease")


def test_c13_an_overdue_schedule_is_reported_by_the_exit_code(cli: Cli, arrange: Arrange[Any]) -> None:
    long_ago = datetime(2020, 1, 1, tzinfo=UTC)
    report = Timed(Schedule(name="report", kind="greet", expression="@daily"), long_ago)
    arrange(lambda store: store.save_schedule(report, By("ada")))
    answer = cli("doctor", "--json")
    assert answer.code == Exit.UNHEALTHY
    [finding] = [finding for finding in answer.json["findings"] if finding["check"] == "schedules"]
    assert (finding["severity"], "'report'" in finding["seen"], bool(finding["advice"])) == ("problem", True, True)


def test_a_file_shared_through_the_standard_library_is_healthy_and_json_is_only_json(tmp_path: Any) -> None:
    """The guide asks for this driver where a file is shared: doctor may warn of its SQLite, and does not fail."""
    url = f"sqlite:///{tmp_path / 'shared.db'}?driver=sqlite3"
    database = {"PERDURE_URL": url}
    program = (sys.executable, "-m", "perdure")
    for words, code in ((("migrate", "--json"), Exit.OK), (("doctor", "--json"), Exit.OK)):
        done = subprocess.run(
            (*program, *words), env=os.environ | database, capture_output=True, text=True, check=False
        )
        assert done.returncode == code, done.stderr
        assert done.stderr == ""
        json.loads(done.stdout)


def test_the_doctor_mends_the_waits_of_jobs_that_were_parked_by_a_clock_ahead(
    cli: Cli, arrange: Arrange[Any], engine_url: str
) -> None:
    async def park_one(store: Store) -> JobId:
        [claim] = await claims_of(store, 1)
        await apply(store, transition.paused(claim, Reason.RATE_LIMITED, MINUTE, "api"))
        return claim.job_id

    job_id = arrange(park_one)
    decade = str(10 * 365 * 86_400 * 1_000_000) if engine_url.startswith("sqlite") else "interval '3650 days'"
    query(engine_url, f"UPDATE {{parked}} SET due_at = due_at + {decade}, parked_at = parked_at + {decade}")
    [found] = [one for one in cli("doctor", "--json").json["findings"] if one["check"] == "parked ahead"]
    assert (found["severity"], "--repair" in found["advice"]) == ("problem", True)
    after = {one["check"]: one for one in cli("doctor", "--repair", "--json").json["findings"]}
    assert after["repair"]["seen"] == "jobs that wait as they should again: 1"
    assert after["parked ahead"]["severity"] == "ok"
    view = arrange(lambda store: show(store, job_id))
    assert view.due_at < SystemClock().now() + 2 * MINUTE

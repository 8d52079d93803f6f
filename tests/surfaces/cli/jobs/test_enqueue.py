"""`perdure enqueue`, `perdure stats`, and what the shell completes."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.builders.jobs import a_job, job_in
from tests.surfaces.conftest import Answer, Arrange, Cli, run_cli

from perdure.domain.jobs.ids import new_job_id
from perdure.domain.jobs.states import JobState
from perdure.surfaces.cli.completion import complete_id, complete_kind, complete_queue
from perdure.surfaces.cli.exits import Exit

STALL = """
from datetime import date

from perdure import App, Unique

app = App()


@app.job(unique=Unique(by="day"))
async def report(day: date, copies: int = 1) -> None: ...
"""


@pytest.fixture(autouse=True)
def stall(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """An app within reach of this process; nothing of it is left behind."""
    (tmp_path / "stall.py").write_text(STALL)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield
    sys.modules.pop("stall", None)


def enqueue(cli: Cli, *words: str) -> Answer:
    return cli("enqueue", "report", "--app", "stall:app", *words)


def test_a_job_is_made_with_all_that_was_said(cli: Cli) -> None:
    own = str(new_job_id())
    words = (
        "--queue",
        "mail",
        "--priority",
        "2",
        "--delay",
        "2h",
        "--tag",
        "a",
        "--tag",
        "b",
        "--meta",
        '{"by": "me"}',
        "--ref",
        "JB_1",
    )
    answer = enqueue(cli, "--args", '{"day": "2026-03-01"}', "--id", own, *words, "--json")
    assert (answer.code, answer.json["id"], answer.json["intake"]) == (Exit.OK, own, "new")
    job = cli("jobs", "show", "JB_1", "--json").json["job"]
    assert (job["id"], job["kind"], job["queue"], job["priority"], job["state"]) == (
        own,
        "report",
        "mail",
        2,
        "scheduled",
    )
    assert (job["args"], job["tags"], job["meta"]) == ({"day": "2026-03-01"}, ["a", "b"], {"by": "me"})


def test_people_see_the_id_and_a_second_one_is_no_error(cli: Cli) -> None:
    first = enqueue(cli, "--args", '{"day": "2026-03-01"}')
    assert (first.code, "report enqueued in default" in first.out) == (Exit.OK, True)
    second = enqueue(cli, "--args", '{"day": "2026-03-01", "copies": 2}')
    assert (second.code, "report is there already" in second.out) == (Exit.OK, True)
    assert first.out.split()[-1] == second.out.split()[-1]


def test_a_time_in_words(cli: Cli) -> None:
    answer = enqueue(cli, "--args", '{"day": "2026-03-01"}', "--at", "+1h", "--json")
    assert answer.json["job"]["state"] == "scheduled"


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (("--args", '{"day": "soon"}'), "day"),
        (("--args", "{}"), "argument day"),
        (("--args", '{"day": "2026-03-01", "colour": 1}'), "argument colour"),
        (("--args", "[1]"), "--args must be a JSON object"),
        (("--args", "{"), "--args is not JSON"),
        (("--args", '{"day": "2026-03-01"}', "--priority", "10"), "priority"),
        (("--args", '{"day": "2026-03-01"}', "--id", "42"), "must be a UUID"),
        (("--args", '{"day": "2026-03-01"}', "--delay", "1h", "--at", "+1h"), "delay are both given"),
    ],
)
def test_bad_input_is_refused_and_nothing_is_stored(
    cli: Cli, arrange: Arrange[None], words: tuple[str, ...], part: str
) -> None:
    arrange(lambda store: store.check_schema())
    answer = enqueue(cli, *words)
    assert (answer.code, part in " ".join(answer.err.split())) == (Exit.USAGE, True), answer.err
    assert cli("jobs", "list", "--json").json["jobs"] == []


def test_an_unknown_kind_and_a_missing_app_are_reported(cli: Cli) -> None:
    unknown = cli("enqueue", "repot", "--app", "stall:app")
    assert (unknown.code, "declared are: report" in unknown.err) == (Exit.NOT_FOUND, True)
    missing = cli("enqueue", "report")
    assert (missing.code, "--app is needed" in missing.err) == (Exit.USAGE, True)


def test_stats_count_by_queue_kind_and_state(cli: Cli, arrange: Arrange[Any]) -> None:
    arrange(lambda store: job_in(JobState.DEAD, store))
    arrange(lambda store: store.insert([a_job(queue="mail"), a_job(queue="mail")]))
    answer = cli("stats", "--json")
    assert answer.code == Exit.OK
    assert answer.json["queues"] == [
        {"queue": "default", "state": "dead", "jobs": 1, "capped": False},
        {"queue": "mail", "state": "ready", "jobs": 2, "capped": False},
    ]
    assert answer.json["kinds"] == [
        {"kind": "greet", "state": "dead", "jobs": 1, "capped": False},
        {"kind": "greet", "state": "ready", "jobs": 2, "capped": False},
    ]
    assert answer.json["workers"] >= 0
    page = cli("stats").out
    assert [line.split() for line in page.splitlines()[:1]] == [["Queue", "ready", "dead"]]
    assert ["mail", "2"] in [line.split() for line in page.splitlines()]
    assert ["greet", "2", "1"] in [line.split() for line in page.splitlines()]


def test_stats_of_an_empty_database(cli: Cli, arrange: Arrange[None]) -> None:
    arrange(lambda store: store.check_schema())
    assert (cli("stats").code, cli("stats").out) == (Exit.OK, "No jobs.\n")


def test_the_shell_is_offered_kinds_queues_and_ids(
    arrange: Arrange[Any], engine_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = [a_job(kind="greet", queue="mail"), a_job(kind="grow", queue="other")]
    arrange(lambda store: store.insert(made))
    monkeypatch.setenv("PERDURE_URL", engine_url)
    assert complete_kind("gr") == ["greet", "grow"]
    assert complete_queue("m") == ["mail"]
    assert set(complete_id("")) == {job.id for job in made}
    assert complete_id(made[0].id[:-1]) == [made[0].id]


def test_the_shell_is_offered_nothing_where_nothing_can_be_known(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    for url in ("sqlite:///missing.db", "nonsense", "postgresql://127.0.0.1:1/none"):
        monkeypatch.setenv("PERDURE_URL", url)
        assert (complete_kind(""), complete_id("0")) == ([], [])
    assert capfd.readouterr() == ("", "")


def test_completion_works_in_a_real_shell_script(arrange: Arrange[Any], engine_url: str) -> None:
    arrange(lambda store: store.insert([a_job(kind="greet")]))
    words = {"_PERDURE_COMPLETE": "complete_bash", "COMP_WORDS": "perdure jobs list --kind gr", "COMP_CWORD": "4"}
    done = subprocess.run(
        [Path(sys.executable).with_name("perdure")],
        env=os.environ | words | {"PERDURE_URL": engine_url},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert (done.stdout.split(), done.stderr) == (["greet"], "")
    assert "--install-completion" in run_cli("--help").out

"""`perdure preview`: attempts ahead, of a kind and of a job, with their dates."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.support.builders.jobs import A_FAILURE, HOUR, MINUTE, apply, claim_one, employ, enqueue, job_in, start
from tests.support.databases.behind import query
from tests.surfaces.conftest import Arrange, Cli, run_cli

from perdure.domain.jobs import transition
from perdure.domain.jobs.ids import JobId, new_job_id
from perdure.domain.jobs.states import JobState, Reason
from perdure.policy.own_settings import settings_text
from perdure.policy.retries.backoff import Backoff
from perdure.policy.retries.jitter import Jitter
from perdure.policy.retries.retry import Retry
from perdure.storage.port import Store
from perdure.surfaces.cli.exits import Exit

AHEAD = """
from perdure import App, Backoff, Jitter, Retry

app = App("sqlite:///ahead.db")
steady = Retry(attempts=3, backoff=Backoff.fixed("10m"), jitter=Jitter.none())


@app.job(retry=steady)
async def greet(name: str) -> None: ...


@app.job(retry=Retry(attempts=None))
async def endless() -> None: ...


@app.job(retry=Retry(attempts=1, permanent=ValueError, by_error={OSError: steady}))
async def choosy() -> None: ...


def unreadable() -> Retry:
    raise KeyError("settings")


@app.job(retry=unreadable)
async def broken() -> None: ...
"""


@pytest.fixture(autouse=True)
def ahead(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """An app within reach of this process; nothing of it is left behind."""
    (tmp_path / "ahead.py").write_text(AHEAD)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield
    sys.modules.pop("ahead", None)


def starts(plan: list[dict[str, Any]]) -> list[timedelta]:
    """When attempts begin, counted from the first of them."""
    times = [datetime.fromisoformat(step["earliest"]) for step in plan]
    return [time - times[0] for time in times]


async def failed_once(store: Store) -> JobId:
    """A job that failed, crashed once besides, and comes back in an hour."""
    claim = await start(store)
    await apply(store, transition.crashed(claim, A_FAILURE))
    again = await claim_one(store, await employ(store))
    await apply(store, transition.retrying(again, Reason.FAILED, A_FAILURE, HOUR))
    return claim.job_id


def test_b14_a_kind_needs_no_database() -> None:
    found = run_cli("preview", "greet", "--app", "ahead:app", "--json").json
    assert (found["kind"], found["job"], found["attempts"], found["more"]) == ("greet", None, [], False)
    assert starts(found["plan"]) == [timedelta(0), 10 * MINUTE, 20 * MINUTE]
    assert [step["then"] for step in found["plan"]] == [None, None, "attempts exhausted"]
    assert not Path("ahead.db").exists()


def test_b14_each_rule_by_error_has_a_plan_of_its_own() -> None:
    found = run_cli("preview", "choosy", "--app", "ahead:app", "--json").json
    assert [step["then"] for step in found["plan"]] == ["attempts exhausted"]
    assert starts(found["by_error"]["OSError"]["plan"]) == [timedelta(0), 10 * MINUTE, 20 * MINUTE]
    assert [step["then"] for step in found["by_error"]["ValueError"]["plan"]] == ["permanent failure"]
    told = run_cli("preview", "choosy", "--app", "ahead:app").out
    assert "with an error that has no rule of its own" in told
    assert "With OSError:" in told
    assert "After attempt 3 the job is dead" in told


def test_b14_a_kind_for_people() -> None:
    answer = run_cli("preview", "greet", "--app", "ahead:app")
    assert answer.code == Exit.OK
    title, heads, *rows, end = answer.out.splitlines()
    assert title == "greet, enqueued now, if every attempt fails at once:"
    assert heads.split("  ")[0] == "#"
    assert [(row.split()[0], row.split()[-1]) for row in rows] == [("1", "now"), ("2", "10m"), ("3", "20m")]
    assert end == "After attempt 3 the job is dead: attempts exhausted."


def test_b14_jitter_makes_a_span_that_fits_a_narrow_terminal() -> None:
    *_, row, more = run_cli("preview", "endless", "--app", "ahead:app", "--limit", "4").out.splitlines()
    assert row.split()[-4:] == ["in", "4m44s", "to", "5m46s"]
    assert more == "And so on: --limit shows more."


def test_b14_an_endless_policy_says_that_more_follows() -> None:
    answer = run_cli("preview", "endless", "--app", "ahead:app", "--limit", "3")
    assert answer.out.endswith("And so on: --limit shows more.\n")
    assert run_cli("preview", "endless", "--app", "ahead:app", "--limit", "3", "--json").json["more"] is True


def test_b14_a_job_shows_what_was_above_what_will_be(cli: Cli, arrange: Arrange[JobId]) -> None:
    job_id = arrange(failed_once)
    answer = cli("preview", job_id, "--app", "ahead:app")
    assert answer.code == Exit.OK
    assert answer.out.index("Attempts that did not succeed") < answer.out.index("Ahead, if every attempt")
    found = cli("preview", job_id, "--app", "ahead:app", "--json").json
    assert [attempt["number"] for attempt in found["attempts"]] == [1, 2]
    assert [step["attempt"] for step in found["plan"]] == [3, 4]
    assert found["plan"][0]["earliest"] == found["attempts"][1]["next_at"]
    assert starts(found["plan"]) == [timedelta(0), 10 * MINUTE]


@pytest.mark.parametrize("state", [JobState.READY, JobState.RUNNING, JobState.SCHEDULED, JobState.WAITING])
def test_b14_a_job_in_any_state_has_a_plan(state: JobState, cli: Cli, arrange: Arrange[JobId]) -> None:
    job_id = arrange(lambda store: job_in(state, store))
    found = cli("preview", job_id, "--app", "ahead:app", "--json").json
    assert starts(found["plan"]) == [timedelta(0), 10 * MINUTE, 20 * MINUTE]
    said = cli("preview", job_id, "--app", "ahead:app").out
    assert ("under way" in said) is (state is JobState.RUNNING)


def test_b14_a_finished_job_has_nothing_ahead(cli: Cli, arrange: Arrange[JobId]) -> None:
    job_id = arrange(lambda store: job_in(JobState.DEAD, store))
    assert "It is dead: no attempt is ahead." in cli("preview", job_id, "--app", "ahead:app").out
    assert cli("preview", job_id, "--app", "ahead:app", "--json").json["plan"] == []


@pytest.mark.parametrize("what", ["kind", "job"])
def test_b14_without_the_app_it_is_said_clearly(cli: Cli, arrange: Arrange[JobId], what: str) -> None:
    answer = cli("preview", "greet" if what == "kind" else arrange(enqueue), "--json")
    assert (answer.code, answer.error["field"]) == (Exit.USAGE, "--app")
    assert "is in code" in answer.error["error"]


def test_b14_what_cannot_be_previewed_is_named(cli: Cli, arrange: Arrange[JobId]) -> None:
    unknown = cli("preview", "greeet", "--app", "ahead:app", "--json")
    assert (unknown.code, unknown.error["error"]) == (
        Exit.NOT_FOUND,
        "the app declares no kind 'greeet'; declared are: broken, choosy, endless, greet",
    )
    other = arrange(lambda store: enqueue(store, kind="other"))
    assert cli("preview", other, "--app", "ahead:app").code == Exit.NOT_FOUND
    assert cli("preview", new_job_id(), "--app", "ahead:app").code == Exit.NOT_FOUND
    assert "cannot be read: KeyError" in cli("preview", "broken", "--app", "ahead:app", "--json").error["error"]
    assert cli("preview", "greet", "--app", "ahead:app", "--limit", "0").code == Exit.USAGE


def test_g10_a_job_in_a_state_of_the_next_release_has_no_preview(
    cli: Cli, arrange: Arrange[JobId], engine_url: str
) -> None:
    job_id = arrange(lambda store: job_in(JobState.PAUSED, store))
    query(engine_url, "UPDATE {parked} SET state = 'hibernating'")
    answer = cli("preview", job_id, "--app", "ahead:app")
    assert answer.code == Exit.OK
    assert "It is hibernating: no attempt is ahead." in answer.out


async def with_its_own(store: Store) -> JobId:
    policy = Retry(attempts=2, backoff=Backoff.fixed("7m"), jitter=Jitter.none())
    return await enqueue(store, settings=settings_text(policy, None), max_attempts=2)


def test_b14_a_job_with_a_policy_of_its_own_needs_no_code(cli: Cli, arrange: Arrange[JobId]) -> None:
    job_id = arrange(with_its_own)
    found = cli("preview", job_id, "--json").json
    assert starts(found["plan"]) == [timedelta(0), 7 * MINUTE]
    assert starts(cli("preview", job_id, "--app", "ahead:app", "--json").json["plan"]) == [timedelta(0), 7 * MINUTE]
    assert cli("jobs", "show", job_id, "--json").json["job"]["settings"]["retry"]["attempts"] == 2
    assert "Settings of its own" in cli("jobs", "show", job_id).out


async def held_by_a_budget(store: Store) -> JobId:
    policy = Retry(attempts=2, backoff=Backoff.fixed("7m"), jitter=Jitter.none())
    await enqueue(store, settings=settings_text(policy, None), max_attempts=2)
    claim = await claim_one(store, await employ(store))
    await apply(store, transition.paused(claim, Reason.BUDGET_EXCEEDED, HOUR, "ai: 9 of 5 spent in 1d"))
    return claim.job_id


def test_b14_the_next_look_at_a_gate_is_not_called_the_time_of_the_next_attempt(
    cli: Cli, arrange: Arrange[JobId]
) -> None:
    job_id = arrange(held_by_a_budget)
    assert "The first time is the next look at its gate" in cli("preview", job_id).out
    shown = cli("jobs", "show", job_id).out
    assert ("looked at again" in shown, "comes back" in shown) == (True, False)

"""Gates before a call to the model (C11): first the rate, then the money. What is held resumes by itself."""

from __future__ import annotations

import asyncio

import pytest
from systems.tests.pulse.support import PRICE_OF_A_PIECE, SQLITE, children_of, ingest_only, put, seen

from perdure import JobState
from perdure.testing import Sandbox
from perdure_systems.pulse.jobs import app
from perdure_systems.pulse.standins import ModelStandin
from perdure_systems.pulse.web.money import NewLimits, change_limits, money
from perdure_systems.pulse.web.views import reason_of, word_of

DAY, WEEK, MONTH = "1d", "7d", "30d"
ALMOST = {"1d": "23h59m59s", "7d": "6d23h59m59s", "30d": "29d23h59m59s"}


async def states(job_id: str) -> list[tuple[str, str]]:
    return [(word_of(child), reason_of(child)) for child in await children_of(job_id)]


async def test_c11_a_job_over_the_rate_is_paused_at_no_cost_and_resumes_by_itself(
    box: Sandbox, standin: ModelStandin, monkeypatch: pytest.MonkeyPatch
) -> None:
    """2 calls in any 60 seconds: the third waits until the first is 60 seconds old, and not a second less."""
    monkeypatch.setenv("PULSE_MAX_CALLS_PER_MINUTE", "2")
    submitted = await put(3)
    await box.drain()
    assert len(standin.asked) == 2
    assert await states(submitted.job_id) == [("completed", "done")] * 2 + [("paused", "rate_limited")]
    box.travel("59s")
    await box.drain()
    assert len(standin.asked) == 2
    box.travel("1s")
    await box.drain()
    assert len(standin.asked) == 3
    view = await box.job(submitted.job_id)
    assert view.state is JobState.SUCCEEDED, "no operator has resumed it"
    assert [(child.failures, child.crashes) for child in await children_of(submitted.job_id)] == [(0, 0)] * 3


@pytest.mark.parametrize(
    ("engine_url", "window"),
    [("sqlite", DAY), ("sqlite", WEEK), ("sqlite", MONTH), ("postgres", DAY)],
    indirect=["engine_url"],
)
async def test_c11_a_job_over_the_budget_is_paused_at_no_cost_and_resumes_by_itself(
    box: Sandbox, standin: ModelStandin, monkeypatch: pytest.MonkeyPatch, window: str
) -> None:
    """Money for two pieces in any window: the third is refused as spend + estimate > limit, and waits its end."""
    for name, span in (("DAILY", DAY), ("WEEKLY", WEEK), ("MONTHLY", MONTH)):
        limit = 2 * PRICE_OF_A_PIECE if span == window else 0
        monkeypatch.setenv(f"PULSE_{name}_BUDGET", str(limit))
    submitted = await put(3)
    await box.drain()
    assert len(standin.asked) == 2, "what is exactly at the limit is allowed"
    assert await states(submitted.job_id) == [("completed", "done")] * 2 + [("paused", "budget_exceeded")]
    box.travel(ALMOST[window])
    await box.drain()
    assert len(standin.asked) == 2
    await box.drain(travel="1h")
    assert len(standin.asked) == 3
    assert (await box.job(submitted.job_id)).state is JobState.SUCCEEDED, "no operator has resumed it"
    assert [(child.failures, child.crashes) for child in await children_of(submitted.job_id)] == [(0, 0)] * 3


async def test_c11_the_rate_is_asked_before_the_budget_and_the_parent_comes_first_of_all(
    box: Sandbox, standin: ModelStandin, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second piece has neither a turn nor money: the rate is named. A minute later it is the money."""
    monkeypatch.setenv("PULSE_MAX_CALLS_PER_MINUTE", "1")
    monkeypatch.setenv("PULSE_DAILY_BUDGET", str(PRICE_OF_A_PIECE))
    submitted = await put(2)
    await box.drain()
    assert (await states(submitted.job_id))[1] == ("paused", "rate_limited")
    box.travel("60s")
    await box.drain()
    assert (await states(submitted.job_id))[1] == ("paused", "budget_exceeded")
    _, held = await children_of(submitted.job_id)
    await (await app.desk("test")).delete(submitted.job_id)
    box.travel(DAY)
    await box.drain()
    assert len(standin.asked) == 1, "a child whose parent is gone passes no gate and does not run"
    after = (await (await app.desk("test")).job(held.id)).job
    assert (after.state, after.reason) == (JobState.CANCELLED, "cancelled: parent job deleted")


async def test_c11_spend_counts_what_the_model_has_really_taken(
    box: Sandbox, standin: ModelStandin, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The model is twice as dear as was estimated: the budget for four pieces is spent after two."""
    monkeypatch.setenv("PULSE_DAILY_BUDGET", str(4 * PRICE_OF_A_PIECE))
    standin.price = 0.02
    submitted = await put(4)
    await box.drain()
    assert len(standin.asked) == 2
    assert (await states(submitted.job_id))[2:] == [("paused", "budget_exceeded")] * 2
    at = await money(await app.desk("test"))
    assert at.windows[0].spent == pytest.approx(4 * PRICE_OF_A_PIECE)
    assert (at.budget_exceeded, at.rate_limited) == (2, 0)


@SQLITE
async def test_c11_a_model_that_answers_429_pauses_the_job_for_as_long_as_it_says(
    box: Sandbox, standin: ModelStandin
) -> None:
    standin.next_answers.append(429)
    standin.retry_after = 17
    submitted = await put(1)
    await box.drain()
    [child] = await children_of(submitted.job_id)
    assert (word_of(child), reason_of(child), child.failures) == ("paused", "rate_limited", 0)
    assert child.due_at is not None
    assert (child.due_at - box.now).total_seconds() == 17
    box.travel("17s")
    await box.drain()
    assert (await box.job(submitted.job_id)).state is JobState.SUCCEEDED


async def test_c11_a_raised_limit_lets_paused_jobs_go_on_at_once(
    box: Sandbox, standin: ModelStandin, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PULSE_DAILY_BUDGET", str(PRICE_OF_A_PIECE))
    submitted = await put(3)
    await box.drain()
    assert len(standin.asked) == 1
    changed = await change_limits(await app.desk("ops"), NewLimits(daily=1.0))
    assert changed.windows[0].limit == 1.0
    await box.drain()
    assert (await box.job(submitted.job_id)).state is JobState.SUCCEEDED
    [entry] = (await (await app.desk("ops")).audit(action="pulse_limits")).entries
    assert entry.actor == "ops"


async def test_c11_many_operators_may_set_the_same_limit_at_once(box: Sandbox) -> None:
    desk = await app.desk("ops")
    await asyncio.gather(*(change_limits(desk, NewLimits(daily=float(number))) for number in range(1, 13)))
    assert (await money(desk)).windows[0].limit in range(1, 13)
    del box


@SQLITE
async def test_c11_a_call_that_is_dearer_than_a_whole_limit_waits_for_a_new_limit(
    box: Sandbox, standin: ModelStandin, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PULSE_DAILY_BUDGET", str(PRICE_OF_A_PIECE / 2))
    submitted = await put(1)
    await box.drain()
    assert await states(submitted.job_id) == [("paused", "budget_exceeded")]
    assert standin.asked == []
    await change_limits(await app.desk("ops"), NewLimits(daily=1.0))
    await box.drain()
    assert (await box.job(submitted.job_id)).state is JobState.SUCCEEDED


@SQLITE
@pytest.mark.parametrize("share", [1.0, 0.5])
async def test_c10_with_pause_on_budget_off_the_job_fails_instead(
    box: Sandbox, standin: ModelStandin, monkeypatch: pytest.MonkeyPatch, share: float
) -> None:
    monkeypatch.setenv("PULSE_DAILY_BUDGET", str(share * PRICE_OF_A_PIECE))
    monkeypatch.setenv("PULSE_PAUSE_ON_BUDGET", "false")
    submitted = await put(2)
    await box.drain()
    children = await children_of(submitted.job_id)
    failed = [child for child in children if word_of(child) == "failed"]
    assert len(failed) == (1 if share == 1.0 else 2)
    assert "budget exceeded: pulse.model" in (failed[-1].last_error or "")
    assert failed[-1].failures == 1, "it is not tried again"
    assert len(standin.asked) == 2 - len(failed)


@SQLITE
async def test_c11_children_are_created_however_little_money_there_is(
    box: Sandbox, standin: ModelStandin, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A gate holds the calls, and not the work that costs nothing."""
    monkeypatch.setenv("PULSE_DAILY_BUDGET", str(PRICE_OF_A_PIECE))
    submitted = await put(2)
    await ingest_only(box)
    assert (await seen(submitted.job_id, "waiting")).awaits == "family:aggregate"
    assert standin.asked == []

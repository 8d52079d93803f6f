"""A database clock that was ahead and was put back: nothing waits until the time that it showed (G8, C11)."""

from __future__ import annotations

from datetime import timedelta

import pytest
from tests.support.builders.borrowing import idle_loan
from tests.support.builders.gate_requests import ask, breaker, budget, claims_of, park, passed, rate
from tests.support.builders.jobs import (
    A_FAILURE,
    DAY,
    HOUR,
    INSTANT,
    MINUTE,
    SECOND,
    a_key,
    apply,
    claim_some,
    employ,
    ending_in,
    enqueue,
    job_in,
    second_comer,
    show,
    start,
)
from tests.support.builders.spends import sum_all
from tests.support.databases.behind import query

from perdure.clock import ManualClock
from perdure.domain.flows.flow import StepKind, StepRecord, StepState, StepWrite
from perdure.domain.gate import BreakerReport, BreakerState
from perdure.domain.jobs import transition
from perdure.domain.jobs.job import Intake
from perdure.domain.jobs.states import JobState, Reason
from perdure.domain.operate.audit import By
from perdure.operate.health.checkup import Checkup, repair
from perdure.policy.limits.breaker import note_reports
from perdure.storage.operate.diagnosis import Severity
from perdure.storage.port import Store
from perdure.storage.records import Keep

AHEAD = [HOUR, 10 * 365 * DAY]


def jump(clock: ManualClock, by: timedelta) -> None:
    """The date changes, the time that passes does not."""
    clock._now += by


@pytest.mark.parametrize("ahead", AHEAD)
@pytest.mark.parametrize("limit", [20, 1_000])
async def test_g8_starts_that_lie_ahead_count_as_if_they_had_begun_now(
    store: Store, clock: ManualClock, ahead: timedelta, limit: int
) -> None:
    """They have happened, so nobody starts too early; and for no longer than others do they hold anybody."""
    claims = await claims_of(store, limit + 3)
    jump(clock, ahead)
    assert await passed(store, claims[:-3], **rate(limit, SECOND)) == claims[:-3]
    jump(clock, -ahead)
    [held] = await ask(store, claims[-3:-2], **rate(limit, SECOND))
    assert held is not None
    assert held.wait <= SECOND
    clock.move(SECOND - INSTANT)
    assert await passed(store, claims[-3:-2], **rate(limit, SECOND)) == []
    clock.move(INSTANT)
    assert await passed(store, claims[-3:], **rate(limit, SECOND)) == claims[-3:]


@pytest.mark.parametrize("ahead", AHEAD)
async def test_g8_few_starts_that_lie_ahead_do_not_draw_others_along(
    store: Store, clock: ManualClock, ahead: timedelta
) -> None:
    claims = await claims_of(store, 30)
    jump(clock, ahead)
    assert await passed(store, claims[:1], **rate(20, MINUTE)) == claims[:1]
    jump(clock, -ahead)
    assert await passed(store, claims[1:6], **rate(20, MINUTE)) == claims[1:6]
    assert await passed(store, claims[6:], **rate(20, MINUTE)) == claims[6:20]
    clock.move(MINUTE)
    assert await passed(store, claims[20:], **rate(20, MINUTE)) == claims[20:]


@pytest.mark.parametrize("ahead", AHEAD)
async def test_places_that_were_given_ahead_hold_no_job_behind_them(
    store: Store, clock: ManualClock, ahead: timedelta
) -> None:
    claims = await claims_of(store, 12)
    jump(clock, ahead)
    await park(store, claims[:9], await ask(store, claims[:9], **rate(2, MINUTE)))
    jump(clock, -ahead)
    [held] = await ask(store, claims[9:10], **rate(2, MINUTE))
    assert held is not None
    assert held.wait <= MINUTE
    clock.move(MINUTE)
    assert await passed(store, claims[9:], **rate(2, MINUTE)) == claims[9:11]


async def test_places_of_a_line_that_moves_on_are_kept(store: Store, clock: ManualClock) -> None:
    """A step back of some seconds, as NTP makes it, costs no job its place."""
    claims = await claims_of(store, 6)
    await park(store, claims[:5], await ask(store, claims[:5], **rate(1, MINUTE)))
    jump(clock, -5 * SECOND)
    [held] = await ask(store, claims[5:], **rate(1, MINUTE))
    assert held is not None
    assert held.wait > 4 * MINUTE


async def test_c11_spends_that_lie_ahead_count_for_one_window(store: Store, clock: ManualClock) -> None:
    spender, asker = await claims_of(store, 2)
    jump(clock, 10 * 365 * DAY)
    await store.spend(spender, "ai", 9)
    await sum_all(store)
    jump(clock, -10 * 365 * DAY)
    assert await passed(store, [asker], **budget(10, 2)) == []
    await store.forget_gates(100)
    assert await store.spent("ai", clock.now() - DAY) == 9
    clock.move(DAY - INSTANT)
    assert await passed(store, [asker], **budget(10, 2)) == []
    clock.move(INSTANT)
    assert await passed(store, [asker], **budget(10, 2)) == [asker]
    await sum_all(store)
    assert await store.spent("ai", clock.now() - DAY) == 2


@pytest.mark.parametrize("ahead", AHEAD)
async def test_a_breaker_that_was_opened_ahead_is_open_for_as_long_as_it_was_meant_to(
    store: Store, clock: ManualClock, ahead: timedelta
) -> None:
    failed, asker = await claims_of(store, 2)
    jump(clock, ahead)
    news = [(breaker(failures=1), BreakerReport("ca", failed.job_id, succeeded=False))]
    [view] = await store.report_breakers({"ca"}, note_reports(news))
    assert view.state is BreakerState.OPEN
    jump(clock, -ahead)
    [held] = await ask(store, [asker], breaker=breaker(failures=1))
    assert held is not None
    assert held.wait == MINUTE
    clock.move(MINUTE)
    assert await ask(store, [asker], breaker=breaker(failures=1)) == [None]


async def test_what_a_worker_was_lent_that_died_ahead_comes_back(
    store: Store, clock: ManualClock, engine_url: str
) -> None:
    jump(clock, 10 * 365 * DAY)
    borrower = await idle_loan(store, 3, **rate(12, SECOND))
    await store.retire(borrower)
    jump(clock, -10 * 365 * DAY)
    claims = await claims_of(store, 12)
    assert await passed(store, claims, **rate(12, SECOND)) == claims
    await store.recall_loans()
    assert query(engine_url, "SELECT count(*) FROM {gate_loan}") == [(0,)]


# Jobs that are parked


@pytest.mark.parametrize("ahead", AHEAD)
async def test_jobs_that_were_parked_ahead_are_reported_and_mended(
    store: Store, clock: ManualClock, engine_url: str, ahead: timedelta
) -> None:
    """By the doctor: each waits for as long as it was meant to. What was scheduled for a date stays."""
    jump(clock, ahead)
    scheduled = await enqueue(store, delay=HOUR)
    retrying, held, sleeping = claims = await claims_of(store, 3)
    assert await store.save_steps([StepWrite(sleeping, asleep(clock))]) == [True]
    await apply(
        store,
        transition.retrying(retrying, Reason.FAILED, A_FAILURE, MINUTE),
        transition.paused(held, Reason.RATE_LIMITED, 2 * MINUTE, "x"),
        transition.parked(sleeping, Reason.SLEEPING, 3 * MINUTE, None, None),
    )
    assert await store.parked_ahead() is None
    jump(clock, -ahead)
    found = await store.parked_ahead()
    assert found is not None
    assert (found.jobs, found.by) == (3, ahead)
    [bad] = [one for one in await Checkup(store, clock).examine() if one.check == "parked ahead"]
    assert bad.severity is Severity.PROBLEM
    assert bad.seen.startswith("3 jobs parked by a clock that was ahead by up to")
    assert "perdure doctor --repair" in bad.advice
    assert await repair(store, By("ann")) == 3
    assert await store.parked_ahead() is None
    dues = [(await show(store, claim.job_id)).due_at for claim in claims]
    assert dues == [clock.now() + wait for wait in (MINUTE, 2 * MINUTE, 3 * MINUTE)]
    [kept] = (await store.steps([sleeping.job_id]))[sleeping.job_id]
    assert kept.due_at == clock.now() + 3 * MINUTE
    assert (await show(store, scheduled)).due_at == clock.now() + ahead + HOUR
    assert query(engine_url, f"SELECT actor, action FROM {{audit}} WHERE job_id = '{held.job_id}'") == [
        ("ann", "redate")
    ]
    clock.move(3 * MINUTE)
    assert (await store.promote(10)).total == 3
    assert (await show(store, sleeping.job_id)).state is JobState.READY


async def test_jobs_that_wait_long_by_their_own_wish_are_left_alone(store: Store, clock: ManualClock) -> None:
    [claim] = await claims_of(store, 1)
    await apply(store, transition.waiting(claim, Reason.SNOOZED, 10 * 365 * DAY))
    jump(clock, -5 * SECOND)
    assert await store.parked_ahead() is None
    assert await repair(store, By("ann")) == 0
    assert (await claim_some(store, await employ(store))) == []


# Jobs that have ended


@pytest.mark.parametrize("ahead", AHEAD)
async def test_g7_the_key_of_a_job_that_died_ahead_is_held_for_as_long_as_it_was_meant_to(
    store: Store, clock: ManualClock, ahead: timedelta
) -> None:
    jump(clock, ahead)
    claim = await start(store, unique=a_key(dead_for=10 * MINUTE))
    await apply(store, ending_in(JobState.DEAD, claim))
    jump(clock, -ahead)
    await store.prune(Keep(), 100)
    clock.move(10 * MINUTE - INSTANT)
    await store.prune(Keep(), 100)
    assert await second_comer(store) == (claim.job_id, Intake.EXISTING)
    clock.move(INSTANT)
    job_id, intake = await second_comer(store)
    assert (job_id == claim.job_id, intake) == (False, Intake.NEW)


async def test_g7_the_key_of_a_job_that_died_just_now_is_held_until_its_time(
    store: Store, clock: ManualClock, engine_url: str
) -> None:
    """A step back of some seconds, as NTP makes it, changes nothing."""
    claim = await start(store, unique=a_key(dead_for=10 * MINUTE))
    await apply(store, ending_in(JobState.DEAD, claim))
    held = query(engine_url, "SELECT expires_at FROM {unique_hold}")
    jump(clock, -5 * SECOND)
    await store.prune(Keep(), 100)
    assert query(engine_url, "SELECT expires_at FROM {unique_hold}") == held


@pytest.mark.parametrize("state", [JobState.SUCCEEDED, JobState.DEAD, JobState.CANCELLED])
async def test_jobs_that_ended_ahead_are_kept_for_no_longer_than_others(
    store: Store, clock: ManualClock, state: JobState
) -> None:
    jump(clock, 10 * 365 * DAY)
    job_ids = [await job_in(state, store, queue=queue) for queue in ("default", "other")]
    jump(clock, -10 * 365 * DAY)
    keep = Keep(succeeded=DAY, dead=DAY, cancelled=DAY)
    assert await store.prune(keep, 100) == 0
    views = [await show(store, job_id) for job_id in job_ids]
    assert [view.finished_at for view in views] == [clock.now()] * 2
    assert all(view.started_at is None or view.started_at <= clock.now() for view in views)
    clock.move(DAY + INSTANT)
    assert await store.prune(keep, 100) == 2


# What else keeps the time


async def test_a_job_of_a_kind_that_was_unknown_ahead_is_dead_in_time(store: Store, clock: ManualClock) -> None:
    jump(clock, 10 * 365 * DAY)
    first = await start(store)
    await apply(store, transition.paused(first, Reason.UNKNOWN_KIND, SECOND, "no handler"))
    jump(clock, -10 * 365 * DAY)
    await repair(store, By("ann"))
    for _ in range(2):
        clock.move(MINUTE)
        assert (await store.promote(10)).total == 1
        [claim] = await claim_some(store, await employ(store))
        await apply(store, transition.paused(claim, Reason.UNKNOWN_KIND, SECOND, "no handler"))
    assert claim.unknown_since == clock.now() - MINUTE


@pytest.mark.parametrize("ahead", AHEAD)
async def test_a_lead_that_was_taken_ahead_is_free(store: Store, clock: ManualClock, ahead: timedelta) -> None:
    """Its holder is gone. The next one to ask leads, and lists do not show the one that is gone."""
    jump(clock, ahead)
    assert (await store.lead("reports", "anna", MINUTE)).is_ours
    jump(clock, -ahead)
    assert await store.leaders() == []
    assert (await store.lead("reports", "ben", MINUTE)).is_ours
    [leader] = await store.leaders()
    assert (leader.holder, leader.since, leader.until) == ("ben", clock.now(), clock.now() + MINUTE)


async def test_a_leader_that_renews_a_lead_taken_ahead_has_it_since_now(store: Store, clock: ManualClock) -> None:
    jump(clock, HOUR)
    assert (await store.lead("reports", "anna", MINUTE)).is_ours
    jump(clock, -HOUR)
    assert (await store.lead("reports", "anna", MINUTE)).is_ours
    [leader] = await store.leaders()
    assert (leader.since, leader.until) == (clock.now(), clock.now() + MINUTE)


@pytest.mark.parametrize("ahead", AHEAD)
async def test_e9_keys_of_throttled_actions_that_were_taken_ahead_are_free(
    store: Store, clock: ManualClock, engine_url: str, ahead: timedelta
) -> None:
    """And those without further requests are deleted in passing."""
    jump(clock, ahead)
    for number in range(30):
        assert await store.once_per(f"alert:{number}", MINUTE, "a")
    jump(clock, -ahead)
    assert await store.once_per("alert:0", HOUR, "b")
    assert not await store.once_per("alert:0", HOUR, "c")
    assert await store.once_per("other", HOUR, "b")
    assert sorted(query(engine_url, "SELECT key FROM {throttle}")) == [("alert:0",), ("other",)]


def asleep(clock: ManualClock) -> StepRecord:
    """A sleep of three minutes."""
    return StepRecord(
        key="sleep",
        kind=StepKind.SLEEP,
        state=StepState.BEGUN,
        due_at=clock.now() + 3 * MINUTE,
        begun_at=clock.now(),
    )

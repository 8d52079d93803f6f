"""CommandStore.reschedule: another time for jobs that would come back by themselves."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

import pytest
from tests.support.builders.jobs import (
    DAY,
    HOUR,
    INSTANT,
    MINUTE,
    a_job,
    apply,
    claim_one,
    claim_some,
    employ,
    enqueue,
    job_in,
    numbered_id,
    only,
    show,
    start,
)
from tests.support.databases.behind import query

from perdure.clock import ManualClock
from perdure.domain.jobs import transition
from perdure.domain.jobs.states import PARKED, JobState, Reason
from perdure.domain.operate.audit import By
from perdure.storage.port import Store
from perdure.storage.records import JobFilter


@pytest.mark.parametrize("state", sorted(PARKED))
@pytest.mark.parametrize("moved", [-MINUTE, DAY], ids=["sooner", "later"])
async def test_a_parked_job_comes_back_at_its_new_time(
    store: Store, clock: ManualClock, state: JobState, moved: timedelta
) -> None:
    job_id = await job_in(state, store)
    due_at = clock.now() + HOUR + moved
    assert await store.reschedule(only(job_id), due_at, By("ops"), 10) == [job_id]
    view = await show(store, job_id)
    assert (view.state, view.due_at) == (state, due_at)
    clock.move(HOUR + moved - INSTANT)
    assert (await store.promote(10)).total == 0
    clock.move(INSTANT)
    assert (await store.promote(10)).total == 1
    assert (await claim_one(store, await employ(store))).job_id == job_id


async def test_a_time_without_a_date_in_utc_delays_no_other_job(store: Store, clock: ManualClock) -> None:
    """The last evening of a western zone comes after the calendar of UTC has ended."""
    put_off = await job_in(JobState.SCHEDULED, store)
    last_evening = datetime.max.replace(tzinfo=timezone(-HOUR))
    await store.reschedule(only(put_off), last_evening, By("ops"), 1)
    soon = await enqueue(store, delay=MINUTE)
    clock.move(MINUTE)
    assert (await store.promote(10)).total == 1
    assert (await show(store, soon)).state is JobState.READY


async def test_a_time_that_has_passed_is_now(store: Store, clock: ManualClock) -> None:
    job_id = await job_in(JobState.SCHEDULED, store)
    await store.reschedule(only(job_id), clock.now() - DAY, By("ops"), 1)
    promoted = await store.promote(10)
    assert promoted.total == 1


async def test_a_job_that_has_never_run_counts_its_time_from_the_new_one(store: Store, clock: ManualClock) -> None:
    """Limits over all attempts begin when a job becomes due: not while it waits for a time that somebody put off."""
    job_id = await job_in(JobState.SCHEDULED, store)
    await store.reschedule(only(job_id), clock.now() + DAY, By("ops"), 1)
    assert (await show(store, job_id)).since == clock.now() + DAY


async def test_a_job_that_has_run_counts_its_time_from_the_beginning(store: Store, clock: ManualClock) -> None:
    began = clock.now()
    job_id = await job_in(JobState.RETRYING, store)
    await store.reschedule(only(job_id), clock.now() + DAY, By("ops"), 1)
    assert (await show(store, job_id)).since == began


@pytest.mark.parametrize("state", sorted(frozenset(JobState) - PARKED))
async def test_a_job_that_waits_for_no_time_is_left_alone(store: Store, clock: ManualClock, state: JobState) -> None:
    job_id = await job_in(state, store)
    before = await show(store, job_id)
    assert await store.reschedule(JobFilter(), clock.now() + DAY, By("ops"), 10) == []
    assert await show(store, job_id) == before


async def test_a_job_that_would_not_come_back_by_itself_is_left_alone(store: Store, clock: ManualClock) -> None:
    claim = await start(store)
    await apply(store, transition.paused(claim, Reason.PAUSED, None))
    before = await show(store, claim.job_id)
    assert before.due_at is None
    timed = await enqueue(store, delay=HOUR)
    assert await store.reschedule(JobFilter(), clock.now() + MINUTE, By("ops"), 1) == [timed]
    assert await show(store, claim.job_id) == before


async def test_only_what_matches_is_rescheduled_and_no_more_than_the_limit(store: Store, clock: ManualClock) -> None:
    ids = [numbered_id(number) for number in range(1, 6)]
    await store.insert([a_job(id=job_id, delay=HOUR, queue="mail") for job_id in ids])
    other = await enqueue(store, delay=HOUR)
    moved = await store.reschedule(JobFilter(queue="mail"), clock.now() + MINUTE, By("ops"), 3)
    assert moved == ids[:3]
    assert await store.reschedule(JobFilter(), clock.now() + MINUTE, By("ops"), 0) == []
    clock.move(MINUTE)
    assert (await store.promote(10)).by_queue == {"mail": 3}
    assert (await show(store, other)).state is JobState.SCHEDULED
    assert len(await claim_some(store, await employ(store), queue="mail")) == 3


async def test_who_rescheduled_is_written_to_the_audit_trail(store: Store, clock: ManualClock, engine_url: str) -> None:
    job_id = await enqueue(store, delay=HOUR)
    ready = await enqueue(store)
    await store.reschedule(JobFilter(), clock.now() + DAY, By("ada"), 10)
    lines = query(engine_url, "SELECT actor, action, job_id FROM {audit}")
    assert [(actor, action, str(about)) for actor, action, about in lines] == [("ada", "reschedule", job_id)]
    assert ready != job_id

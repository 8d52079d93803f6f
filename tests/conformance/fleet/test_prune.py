"""UpkeepStore.prune: forget what has been kept long enough, and nothing else."""

from __future__ import annotations

from datetime import timedelta

import pytest
from tests.support.builders.jobs import (
    A_FAILURE,
    DAY,
    HOUR,
    INSTANT,
    SECOND,
    a_job,
    a_key,
    apply,
    claim_some,
    employ,
    job_in,
    start,
    state_of,
)

from perdure.clock import ManualClock
from perdure.domain.jobs import transition
from perdure.domain.jobs.job import Intake
from perdure.domain.jobs.states import ACTIVE, FINAL, JobState, Reason
from perdure.domain.operate.audit import By
from perdure.storage.port import Store
from perdure.storage.records import JobFilter, Keep, Page

A_WEEK = 7 * DAY
EVERYTHING = Keep(succeeded=timedelta(0), cancelled=timedelta(0), dead=timedelta(0))


def keep_only(state: JobState, how_long: timedelta | None) -> Keep:
    """Keep this state for so long and the others for ever."""
    return Keep(
        succeeded=how_long if state is JobState.SUCCEEDED else None,
        cancelled=how_long if state is JobState.CANCELLED else None,
        dead=how_long if state is JobState.DEAD else None,
    )


@pytest.mark.parametrize("state", sorted(FINAL))
async def test_each_final_state_is_kept_for_its_own_time(store: Store, clock: ManualClock, state: JobState) -> None:
    ids = {each: await job_in(each, store) for each in sorted(FINAL)}
    clock.move(A_WEEK)
    assert await store.prune(keep_only(state, A_WEEK + SECOND), 100) == 0
    assert await store.prune(keep_only(state, None), 100) == 0
    clock.move(INSTANT)
    assert await store.prune(keep_only(state, A_WEEK), 100) == 1
    left = {view.id for view in await store.jobs(JobFilter(), Page())}
    assert left == set(ids.values()) - {ids[state]}


async def test_time_is_counted_from_the_end_not_from_the_beginning(store: Store, clock: ManualClock) -> None:
    claim = await start(store)
    clock.move(30 * DAY)
    await apply(store, transition.succeeded(claim, None, ()))
    clock.move(HOUR)
    assert await store.prune(Keep(succeeded=DAY), 100) == 0
    clock.move(DAY)
    assert await store.prune(Keep(succeeded=DAY), 100) == 1


@pytest.mark.parametrize("state", sorted(ACTIVE))
async def test_b12_prune_spares_what_is_retrying(store: Store, clock: ManualClock, state: JobState) -> None:
    """Whatever is not final is never touched, however old."""
    job_id = await job_in(state, store)
    clock.move(3_650 * DAY)
    assert await store.prune(EVERYTHING, 100) == 0
    assert await state_of(store, job_id) is state


async def test_b12_failures_of_the_retrying_are_spared_too(store: Store, clock: ManualClock) -> None:
    job_id = await job_in(JobState.RETRYING, store)
    clock.move(3_650 * DAY)
    await store.prune(EVERYTHING, 100)
    assert len(await store.attempts(job_id)) == 1


async def test_b12_a_requeued_job_is_spared(store: Store, clock: ManualClock) -> None:
    job_id = await job_in(JobState.DEAD, store)
    clock.move(400 * DAY)
    await store.requeue(JobFilter(), By("ops"), 10)
    assert await store.prune(EVERYTHING, 100) == 0
    assert await state_of(store, job_id) is JobState.READY


async def test_the_defaults_keep_the_dead_for_ever(store: Store, clock: ManualClock) -> None:
    dead = await job_in(JobState.DEAD, store)
    await job_in(JobState.SUCCEEDED, store)
    cancelled = await job_in(JobState.CANCELLED, store)
    clock.move(8 * DAY)
    assert await store.prune(Keep(), 100) == 1
    assert await state_of(store, cancelled) is JobState.CANCELLED
    clock.move(3_650 * DAY)
    assert await store.prune(Keep(), 100) == 1
    assert [view.id for view in await store.jobs(JobFilter(), Page())] == [dead]


async def test_a_pruned_job_is_gone_with_attempts_and_key(store: Store, clock: ManualClock) -> None:
    claim = await start(store, unique=a_key(states=JobState))
    await apply(store, transition.died(claim, Reason.EXHAUSTED, A_FAILURE))
    clock.move(DAY)
    assert await store.prune(Keep(dead=HOUR), 100) == 1
    assert await store.job(claim.job_id) is None
    assert await store.attempts(claim.job_id) == []
    [receipt] = await store.insert([a_job(unique=a_key())])
    assert receipt.intake is Intake.NEW


async def test_at_most_the_limit_in_one_call(store: Store, clock: ManualClock) -> None:
    await store.insert([a_job() for _ in range(10)])
    claims = await claim_some(store, await employ(store))
    await apply(store, *(transition.succeeded(claim, None, ()) for claim in claims))
    clock.move(DAY)
    assert [await store.prune(EVERYTHING, 4) for _ in range(4)] == [4, 4, 2, 0]


async def test_workers_dead_for_a_day_are_forgotten(store: Store, clock: ManualClock) -> None:
    await employ(store, name="alive")
    await store.retire(await employ(store, name="gone"))
    clock.move(DAY - SECOND)
    await store.prune(Keep(), 100)
    assert len(await store.workers()) == 2
    clock.move(2 * SECOND)
    await store.prune(Keep(), 100)
    assert [view.name for view in await store.workers()] == ["alive"]


async def test_attempts_keep_the_name_of_a_forgotten_worker(store: Store, clock: ManualClock) -> None:
    job_id = await job_in(JobState.DEAD, store)
    [view] = await store.workers()
    await store.retire(view.id)
    clock.move(2 * DAY)
    await store.prune(Keep(), 100)
    [attempt] = await store.attempts(job_id)
    assert attempt.worker == view.name

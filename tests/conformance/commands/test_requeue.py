"""CommandStore.requeue: a new life for finished jobs, in one step (A7)."""

from __future__ import annotations

from datetime import timedelta

import pytest
from tests.support.builders.jobs import (
    A_FAILURE,
    DAY,
    HOUR,
    MINUTE,
    a_job,
    a_key,
    apply,
    claim_one,
    employ,
    enqueue,
    job_in,
    numbered_id,
    only,
    show,
    start,
    state_of,
)

from perdure.clock import ManualClock
from perdure.domain.jobs import transition
from perdure.domain.jobs.job import Intake
from perdure.domain.jobs.states import ACTIVE, FINAL, JobState, Reason
from perdure.domain.operate.audit import By
from perdure.storage.port import Store
from perdure.storage.records import JobFilter

ALL = frozenset(JobState)


@pytest.mark.parametrize("state", sorted(FINAL))
async def test_a7_requeue_resets_in_one_step(store: Store, clock: ManualClock, state: JobState) -> None:
    claim = await start(store)
    await apply(store, transition.retrying(claim, Reason.FAILED, A_FAILURE, timedelta(0)))
    worker_id = await employ(store)
    claim = await claim_one(store, worker_id)
    await apply(store, transition.crashed(claim, A_FAILURE))
    claim = await claim_one(store, worker_id)
    endings = {
        JobState.SUCCEEDED: transition.succeeded(claim, "1", ("slow",)),
        JobState.DEAD: transition.died(claim, Reason.EXHAUSTED, A_FAILURE),
        JobState.CANCELLED: transition.cancelled(claim, "no"),
    }
    await store.cancel(only(claim.job_id), By("ops", "no"), 1)
    await apply(store, endings[state])
    attempts = await store.attempts(claim.job_id)
    clock.move(DAY)
    assert await store.requeue(only(claim.job_id), By("ops"), 10) == [claim.job_id]
    view = await show(store, claim.job_id)
    assert (view.state, view.reason) == (JobState.READY, Reason.REQUEUED)
    assert (view.failures, view.crashes, view.last_error, view.due_at) == (0, 0, None, None)
    assert (view.finished_at, view.result, view.warnings, view.cancel_requested_at) == (None, None, (), None)
    assert view.since == clock.now()
    assert await store.attempts(claim.job_id) == attempts
    again = await claim_one(store, worker_id)
    assert (again.job_id, again.attempt, again.since) == (claim.job_id, 1, clock.now())


@pytest.mark.parametrize("state", sorted(ACTIVE))
async def test_requeue_leaves_alone_what_is_not_final(store: Store, state: JobState) -> None:
    job_id = await job_in(state, store)
    before = await show(store, job_id)
    assert await store.requeue(JobFilter(), By("ops"), 10) == []
    assert await show(store, job_id) == before


async def test_requeue_leaves_alone_a_job_whose_key_is_held(store: Store) -> None:
    dead = await job_in(JobState.DEAD, store, unique=a_key())
    holder = await enqueue(store, unique=a_key())
    free = await job_in(JobState.DEAD, store, queue="other")
    before = await show(store, dead)
    assert await store.requeue(JobFilter(), By("ops"), 10) == [free]
    assert await show(store, dead) == before
    assert await state_of(store, holder) is JobState.READY


async def test_requeue_takes_the_key_again(store: Store) -> None:
    dead = await job_in(JobState.DEAD, store, unique=a_key())
    assert await store.requeue(only(dead), By("ops"), 10) == [dead]
    [receipt] = await store.insert([a_job(unique=a_key())])
    assert (receipt.job_id, receipt.intake) == (dead, Intake.EXISTING)


async def test_requeue_of_a_job_that_still_holds_its_key(store: Store) -> None:
    """Its own hold, for the dead or by state, is no obstacle."""
    for number, key in enumerate((a_key("a", dead_for=HOUR), a_key("b", states=ALL))):
        dead = await job_in(JobState.DEAD, store, unique=key, queue=f"q{number}")
        assert await store.requeue(only(dead), By("ops"), 10) == [dead]


async def test_requeue_takes_over_a_hold_that_has_run_out(store: Store, clock: ManualClock) -> None:
    first = await job_in(JobState.SUCCEEDED, store, unique=a_key())
    await job_in(JobState.DEAD, store, unique=a_key(dead_for=MINUTE))
    assert await store.requeue(only(first), By("ops"), 10) == []
    clock.move(HOUR)
    assert await store.requeue(only(first), By("ops"), 10) == [first]


async def test_requeue_of_two_with_one_key_revives_one(store: Store) -> None:
    both = [await job_in(JobState.SUCCEEDED, store, unique=a_key()) for _ in range(2)]
    [revived] = await store.requeue(JobFilter(), By("ops"), 10)
    assert revived in both
    assert sorted([await state_of(store, job_id) for job_id in both]) == [JobState.READY, JobState.SUCCEEDED]


async def test_held_keys_take_no_room_in_the_limit_of_a_requeue(store: Store) -> None:
    for number in (0, 1, 8, 9):
        key = a_key(f"k{number}")
        await job_in(JobState.DEAD, store, id=numbered_id(number), unique=key)
        await enqueue(store, unique=key, queue="other")
    free = await job_in(JobState.DEAD, store, id=numbered_id(5))
    assert await store.requeue(JobFilter(), By("ops"), 1) == [free]

"""Unique keys: who holds one, what a second comer gets, and how a key travels with its job (E1, E2, G7)."""

from __future__ import annotations

from datetime import timedelta

import pytest
from tests.support.builders.jobs import (
    A_FAILURE,
    DAY,
    HOUR,
    INSTANT,
    MINUTE,
    a_job,
    a_key,
    apply,
    claim_one,
    claim_some,
    employ,
    ending_in,
    enqueue,
    job_in,
    second_comer,
    show,
    start,
    state_of,
)

from perdure.clock import ManualClock
from perdure.domain.jobs import transition
from perdure.domain.jobs.job import Intake, OnConflict
from perdure.domain.jobs.states import ACTIVE, FINAL, PARKED, JobState, Reason
from perdure.errors import DuplicateJobError
from perdure.storage.port import Store
from perdure.storage.records import JobFilter, Page

ALL = frozenset(JobState)
AUDIT_WINDOW = timedelta(minutes=5)


@pytest.mark.parametrize("state", sorted(ALL))
async def test_key_held_in_its_state_returns_the_holder(store: Store, state: JobState) -> None:
    holder = await job_in(state, store, unique=a_key(states=ALL))
    before = await show(store, holder)
    assert await second_comer(store) == (holder, Intake.EXISTING)
    assert await show(store, holder) == before


@pytest.mark.parametrize("state", sorted(ALL))
async def test_key_held_in_its_state_rejects(store: Store, state: JobState) -> None:
    holder = await job_in(state, store, unique=a_key(states=ALL))
    with pytest.raises(DuplicateJobError) as refusal:
        await second_comer(store, OnConflict.REJECT)
    assert (refusal.value.key, refusal.value.job_id) == ("site:example.org", holder)
    assert len(await store.jobs(JobFilter(), Page())) == 1


@pytest.mark.parametrize("state", sorted(ALL))
async def test_key_is_free_outside_its_states(store: Store, state: JobState) -> None:
    holder = await job_in(state, store, unique=a_key(states=ALL - {state}))
    newcomer, intake = await second_comer(store)
    assert intake is Intake.NEW
    assert newcomer != holder


async def test_a_newcomer_outside_its_own_states_still_meets_the_holder(store: Store) -> None:
    """While a job with the key is in its declared states, no second one gets in, in whatever state (G7)."""
    holder = await enqueue(store, unique=a_key())
    late = a_job(delay=HOUR, unique=a_key(states={JobState.READY, JobState.RUNNING}))
    [receipt] = await store.insert([late])
    assert (receipt.job_id, receipt.intake) == (holder, Intake.EXISTING)


async def test_two_of_one_batch_with_one_key_are_one_job(store: Store) -> None:
    receipts = await store.insert([a_job(unique=a_key()), a_job(), a_job(unique=a_key())])
    assert [receipt.intake for receipt in receipts] == [Intake.NEW, Intake.NEW, Intake.EXISTING]
    assert receipts[0].job_id == receipts[2].job_id
    assert len(await store.jobs(JobFilter(), Page())) == 2


async def test_two_of_one_batch_with_one_key_are_refused_if_they_say_so(store: Store) -> None:
    key = a_key(on_conflict=OnConflict.REJECT)
    first = a_job(unique=key)
    with pytest.raises(DuplicateJobError) as refusal:
        await store.insert([first, a_job(), a_job(unique=key)])
    assert (refusal.value.key, refusal.value.job_id) == (key.key, first.id)
    assert await store.jobs(JobFilter(), Page()) == []


async def test_different_keys_do_not_meet(store: Store) -> None:
    keys = ["a", "A", "a ", "", "á", "a\u0301", "%", "_"]
    receipts = await store.insert([a_job(unique=a_key(key)) for key in keys])
    assert [receipt.intake for receipt in receipts] == [Intake.NEW] * len(keys)


async def test_a_key_of_many_letters_is_one_key(store: Store) -> None:
    """Arguments may be part of a key, so it may be longer than a page of an index."""
    long = "x" * 20_000
    first = await enqueue(store, unique=a_key(long + "1"))
    receipts = await store.insert([a_job(unique=a_key(long + "1")), a_job(unique=a_key(long + "2"))])
    assert (receipts[0].job_id, receipts[0].intake) == (first, Intake.EXISTING)
    assert receipts[1].intake is Intake.NEW


@pytest.mark.parametrize("state", [JobState.SCHEDULED, JobState.READY, JobState.RUNNING])
async def test_e2_pending_or_processing_gives_the_existing_one(store: Store, state: JobState) -> None:
    holder = await job_in(state, store, unique=a_key(dead_for=AUDIT_WINDOW))
    assert await second_comer(store) == (holder, Intake.EXISTING)


async def test_e2_completed_gives_a_new_one(store: Store) -> None:
    await job_in(JobState.SUCCEEDED, store, unique=a_key(dead_for=AUDIT_WINDOW))
    assert (await second_comer(store))[1] is Intake.NEW


async def test_e2_failed_lately_gives_the_existing_one_and_later_a_new_one(store: Store, clock: ManualClock) -> None:
    """The window is counted from the death, not from the enqueue, and its end belongs to the newcomer."""
    claim = await start(store, unique=a_key(dead_for=AUDIT_WINDOW))
    clock.move(HOUR)
    await apply(store, transition.died(claim, Reason.EXHAUSTED, A_FAILURE))
    clock.move(AUDIT_WINDOW - INSTANT)
    assert await second_comer(store) == (claim.job_id, Intake.EXISTING)
    clock.move(INSTANT)
    newcomer, intake = await second_comer(store)
    assert intake is Intake.NEW
    assert await second_comer(store) == (newcomer, Intake.EXISTING)
    assert await state_of(store, claim.job_id) is JobState.DEAD


async def test_e2_failed_lately_rejects_within_its_window_only(store: Store, clock: ManualClock) -> None:
    await job_in(JobState.DEAD, store, unique=a_key(dead_for=AUDIT_WINDOW))
    with pytest.raises(DuplicateJobError):
        await second_comer(store, OnConflict.REJECT)
    clock.move(AUDIT_WINDOW)
    assert (await second_comer(store, OnConflict.REJECT))[1] is Intake.NEW


async def test_e2_every_kind_of_death_counts(store: Store) -> None:
    for number, death in enumerate((transition.crashed_for_good, transition.unhandled)):
        claim = await start(store, unique=a_key(f"k{number}", dead_for=AUDIT_WINDOW))
        await apply(store, death(claim, A_FAILURE))
        [receipt] = await store.insert([a_job(unique=a_key(f"k{number}"))])
        assert (receipt.job_id, receipt.intake) == (claim.job_id, Intake.EXISTING)


async def test_a_key_held_by_the_dead_state_itself_never_expires(store: Store, clock: ManualClock) -> None:
    holder = await job_in(JobState.DEAD, store, unique=a_key(states=ALL, dead_for=MINUTE))
    clock.move(400 * DAY)
    assert await second_comer(store) == (holder, Intake.EXISTING)


@pytest.mark.parametrize("state", sorted(PARKED - {JobState.SCHEDULED} | {JobState.READY}))
async def test_a_job_that_cannot_take_its_key_back_is_paused(store: Store, clock: ManualClock, state: JobState) -> None:
    """The key was let go while the job ran; another holds it when the job comes back."""
    claim = await start(store, unique=a_key(states=ALL - {JobState.RUNNING}))
    newcomer, _ = await second_comer(store)
    move = ending_in(state, claim)
    await apply(store, move)
    view = await show(store, claim.job_id)
    assert view.state is JobState.PAUSED
    assert view.reason.startswith(Reason.KEY_HELD)
    assert view.due_at is not None
    assert view.due_at <= clock.now() + timedelta(seconds=30)
    assert (view.failures, view.crashes) == (move.failures, move.crashes)
    assert await second_comer(store) == (newcomer, Intake.EXISTING)


@pytest.mark.parametrize("state", sorted(FINAL))
async def test_a_finished_job_never_comes_back_for_want_of_its_key(store: Store, state: JobState) -> None:
    claim = await start(store, unique=a_key(states=ALL, dead_for=HOUR))
    newcomer, _ = await second_comer(store, OnConflict.REPLACE)
    await apply(store, ending_in(state, claim))
    assert await state_of(store, claim.job_id) is state
    assert await second_comer(store) == (newcomer, Intake.EXISTING)


async def test_a_failure_is_recorded_although_the_key_is_gone(store: Store) -> None:
    claim = await start(store, unique=a_key())
    await second_comer(store, OnConflict.REPLACE)
    await apply(store, transition.retrying(claim, Reason.FAILED, A_FAILURE, MINUTE))
    [attempt] = await store.attempts(claim.job_id)
    assert attempt.message == A_FAILURE.message


@pytest.mark.parametrize("state", sorted(ACTIVE - {JobState.RUNNING, JobState.SCHEDULED}))
async def test_a_key_let_go_while_running_is_taken_back_when_free(store: Store, state: JobState) -> None:
    claim = await start(store, unique=a_key(states=ALL - {JobState.RUNNING}))
    await apply(store, ending_in(state, claim))
    assert await state_of(store, claim.job_id) is state
    assert await second_comer(store) == (claim.job_id, Intake.EXISTING)


async def test_the_key_is_let_go_in_the_same_step_as_the_move(store: Store) -> None:
    claim = await start(store, unique=a_key())
    await apply(store, transition.succeeded(claim, None, ()))
    assert (await second_comer(store))[1] is Intake.NEW


async def test_two_of_one_batch_that_want_one_key_back_get_it_once(store: Store) -> None:
    """Both let go of the key while they ran, and both are released in one batch."""
    while_queued = a_key(states={JobState.READY})
    worker_id = await employ(store)
    claims = []
    for _ in range(2):
        await enqueue(store, unique=while_queued)
        claims.append(await claim_one(store, worker_id))
    await apply(store, *(transition.released(claim) for claim in claims))
    states = [await state_of(store, claim.job_id) for claim in claims]
    assert sorted(states) == [JobState.PAUSED, JobState.READY]


async def test_a_key_let_go_and_wanted_in_one_batch_changes_hands(store: Store) -> None:
    claim = await start(store, unique=a_key(states=ALL - {JobState.RUNNING}))
    other = await start(store, unique=a_key())
    await apply(store, transition.succeeded(other, None, ()), transition.released(claim))
    assert await state_of(store, claim.job_id) is JobState.READY
    assert await second_comer(store) == (claim.job_id, Intake.EXISTING)


async def test_a_stale_claim_takes_no_key(store: Store) -> None:
    claim = await start(store, unique=a_key(states=ALL - {JobState.RUNNING, JobState.SUCCEEDED}))
    await apply(store, transition.succeeded(claim, None, ()))
    late = await store.acknowledge([transition.retrying(claim, Reason.FAILED, A_FAILURE, MINUTE)])
    assert late.applied == 0
    assert (await second_comer(store))[1] is Intake.NEW


async def test_a_stale_claim_lets_no_key_go(store: Store) -> None:
    claim = await start(store, unique=a_key())
    await apply(store, transition.released(claim))
    assert (await store.acknowledge([transition.succeeded(claim, None, ())])).applied == 0
    assert await second_comer(store) == (claim.job_id, Intake.EXISTING)
    assert len(await claim_some(store, await employ(store))) == 1

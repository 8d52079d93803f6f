"""ClaimStore.acknowledge: every transition, and what is recorded with it."""

from __future__ import annotations

from datetime import timedelta

import pytest
from tests.conftest import OpenStore
from tests.support.builders.jobs import (
    A_FAILURE,
    DAY,
    HOSTILE,
    HOUR,
    INSTANT,
    MINUTE,
    SECOND,
    a_job,
    a_key,
    apply,
    claim_one,
    claim_some,
    employ,
    ending_in,
    enqueue,
    show,
    start,
    state_of,
)
from tests.support.builders.transitions import EVERY_TRANSITION, Decision

from perdure.clock import ManualClock
from perdure.domain.jobs import transition
from perdure.domain.jobs.job import Intake
from perdure.domain.jobs.outcome import Failure
from perdure.domain.jobs.states import FINAL, JobState, Reason
from perdure.domain.operate.audit import By
from perdure.storage.port import Store
from perdure.storage.records import Acknowledged, JobFilter

each_transition = pytest.mark.parametrize("decide", EVERY_TRANSITION.values(), ids=EVERY_TRANSITION.keys())


@each_transition
async def test_a_transition_is_written_as_decided(store: Store, clock: ManualClock, decide: Decision) -> None:
    claim = await start(store)
    clock.move(SECOND)
    move = decide(claim)
    assert await store.acknowledge([move]) == Acknowledged(applied=1)
    view = await show(store, claim.job_id)
    assert view.state is move.to
    assert view.reason.startswith(move.reason)
    assert (view.failures, view.crashes) == (move.failures, move.crashes)
    assert (view.result, view.warnings) == (move.result, move.warnings)
    assert view.finished_at == (clock.now() if move.to in FINAL else None)
    parked = move.to in {JobState.RETRYING, JobState.WAITING, JobState.PAUSED} and move.wait is not None
    assert view.due_at == (clock.now() + (move.wait or timedelta(0)) if parked else None)
    assert (view.created_at, view.args, view.kind) == (claim.since, claim.args, claim.kind)
    if move.failure:
        assert view.last_error is not None
        assert "no such host" in view.last_error
    assert len(await store.attempts(claim.job_id)) == (1 if move.failure else 0)


async def test_nothing_to_acknowledge(store: Store) -> None:
    assert await store.acknowledge([]) == Acknowledged(applied=0)


async def test_a_batch_mixes_everything_and_the_stale_do_not_stop_the_rest(store: Store) -> None:
    """Every kind of move in one batch, each beside a stale one."""
    worker_id = await employ(store)
    await store.insert([a_job() for _ in range(2 * len(EVERY_TRANSITION))])
    claims = await claim_some(store, worker_id)
    fresh, lost = claims[::2], claims[1::2]
    await apply(store, *(transition.released(claim) for claim in lost))
    decisions = list(EVERY_TRANSITION.values())
    moves = [decide(claim) for decide, claim in zip(decisions, fresh, strict=True)]
    late = [decide(claim) for decide, claim in zip(decisions, lost, strict=True)]
    mixed = [move for pair in zip(moves, late, strict=True) for move in pair]
    answer = await store.acknowledge(mixed)
    assert answer.applied == len(moves)
    assert sorted(claim.job_id for claim in answer.stale) == sorted(claim.job_id for claim in lost)
    for move in moves:
        view = await show(store, move.claim.job_id)
        assert (view.state, view.failures, view.crashes) == (move.to, move.failures, move.crashes)
        assert (view.result, view.warnings) == (move.result, move.warnings)
        assert len(await store.attempts(view.id)) == (1 if move.failure else 0)
    for claim in lost:
        assert await state_of(store, claim.job_id) is JobState.READY


@pytest.mark.parametrize(
    "wait", [INSTANT, timedelta(seconds=0.1), HOUR, 400 * DAY + INSTANT, 36_500 * DAY + 7 * INSTANT], ids=str
)
async def test_a_wait_is_kept_to_the_microsecond(store: Store, clock: ManualClock, wait: timedelta) -> None:
    claim = await start(store)
    await apply(store, transition.waiting(claim, Reason.SNOOZED, wait))
    assert (await show(store, claim.job_id)).due_at == clock.now() + wait


async def test_a_failed_attempt_keeps_its_own_record(store: Store, clock: ManualClock) -> None:
    job_id = await enqueue(store)
    started_at = clock.move(HOUR)
    claim = await claim_one(store, await employ(store, name="anna"))
    clock.move(SECOND)
    await apply(store, transition.retrying(claim, Reason.FAILED, A_FAILURE, MINUTE))
    [attempt] = await store.attempts(job_id)
    assert (attempt.job_id, attempt.token, attempt.number) == (job_id, claim.token, 1)
    assert (attempt.worker, attempt.reason) == ("anna", Reason.FAILED)
    assert (attempt.started_at, attempt.finished_at) == (started_at, clock.now())
    assert attempt.next_at == clock.now() + MINUTE
    assert (attempt.error_type, attempt.message) == (A_FAILURE.error_type, A_FAILURE.message)
    assert attempt.traceback == A_FAILURE.traceback


async def test_attempts_are_reported_oldest_first_over_all_lives(store: Store, clock: ManualClock) -> None:
    claim = await start(store)
    worker_id = await employ(store)
    await apply(store, transition.retrying(claim, Reason.FAILED, Failure("E", "one"), timedelta(0)))
    claim = await claim_one(store, worker_id)
    clock.move(SECOND)
    await apply(store, transition.crashed(claim, Failure("E", "two")))
    claim = await claim_one(store, worker_id)
    assert (claim.failures, claim.crashes, claim.attempt) == (1, 1, 3)
    clock.move(SECOND)
    await apply(store, transition.died(claim, Reason.EXHAUSTED, Failure("E", "three")))
    await store.requeue(JobFilter(), By("ops"), 10)
    claim = await claim_one(store, worker_id)
    assert claim.attempt == 1
    await apply(store, transition.died(claim, Reason.PERMANENT, Failure("E", "four")))
    attempts = await store.attempts(claim.job_id)
    assert [attempt.message for attempt in attempts] == ["one", "two", "three", "four"]
    assert [attempt.number for attempt in attempts] == [1, 2, 3, 1]
    assert attempts[-1].next_at is None
    assert len({attempt.token for attempt in attempts}) == 4


async def test_the_last_error_is_the_latest(store: Store) -> None:
    claim = await start(store)
    await apply(store, transition.retrying(claim, Reason.FAILED, Failure("E", "first"), timedelta(0)))
    claim = await claim_one(store, await employ(store))
    await apply(store, transition.died(claim, Reason.EXHAUSTED, Failure("F", "second")))
    last_error = (await show(store, claim.job_id)).last_error
    assert last_error is not None
    assert "second" in last_error


async def test_success_keeps_the_count_of_failures(store: Store) -> None:
    """The record says on which attempt it was done."""
    claim = await start(store)
    await apply(store, transition.retrying(claim, Reason.FAILED, A_FAILURE, timedelta(0)))
    claim = await claim_one(store, await employ(store))
    await apply(store, transition.succeeded(claim, "1", ()))
    view = await show(store, claim.job_id)
    assert (view.state, view.failures) == (JobState.SUCCEEDED, 1)
    assert len(await store.attempts(claim.job_id)) == 1


async def test_the_beginning_of_a_life_outlasts_its_attempts(store: Store, clock: ManualClock) -> None:
    """Limits over all attempts count from there, whatever the job waits for in between."""
    beginning = clock.now()
    claim = await start(store)
    worker_id = await employ(store)
    for move in ("failed", "snoozed", "deferred"):
        clock.move(HOUR)
        await apply(store, EVERY_TRANSITION[move](claim))
        clock.move(HOUR)
        await store.promote(10)
        claim = await claim_one(store, worker_id)
        assert claim.since == beginning


async def test_a_released_job_is_ready_again_and_no_worse_off(store: Store) -> None:
    claim = await start(store)
    await apply(store, transition.released(claim))
    again = await claim_one(store, await employ(store))
    assert (again.failures, again.crashes, again.attempt, again.args) == (0, 0, 1, claim.args)
    assert (again.since, again.token > claim.token) == (claim.since, True)


@pytest.mark.parametrize("text", HOSTILE)
async def test_hostile_text_of_a_failure_is_kept_as_it_is(store: Store, text: str) -> None:
    claim = await start(store)
    await apply(store, transition.died(claim, Reason.PERMANENT, Failure(text, text, text)))
    [attempt] = await store.attempts(claim.job_id)
    assert (attempt.error_type, attempt.message, attempt.traceback) == (text, text, text)


@pytest.mark.parametrize("text", HOSTILE)
async def test_hostile_results_warnings_and_notes_are_kept_as_they_are(store: Store, text: str) -> None:
    claim = await start(store)
    await apply(store, transition.succeeded(claim, text, (text, "and another")))
    view = await show(store, claim.job_id)
    assert (view.result, view.warnings) == (text, (text, "and another"))
    other = await start(store)
    await apply(store, transition.cancelled(other, text))
    assert await state_of(store, other.job_id) is JobState.CANCELLED


@pytest.mark.parametrize("text", ["before\0after", "before\udc80after"], ids=["nul", "lone surrogate"])
async def test_text_that_no_database_takes_never_blocks_an_acknowledgement(store: Store, text: str) -> None:
    """An error may say anything; what cannot be stored is replaced, and the neighbours in the batch get through."""
    worker_id = await employ(store)
    await store.insert([a_job() for _ in range(4)])
    claims = await claim_some(store, worker_id)
    await apply(
        store,
        transition.succeeded(claims[0], "1", ()),
        transition.died(claims[1], Reason.PERMANENT, Failure(text, text, text)),
        transition.succeeded(claims[2], None, (text,)),
        transition.cancelled(claims[3], text),
    )
    [attempt] = await store.attempts(claims[1].job_id)
    assert attempt.message.startswith("before")
    assert attempt.message.endswith("after")
    [warning] = (await show(store, claims[2].job_id)).warnings
    assert warning.startswith("before")


async def test_long_errors_and_results_come_back_whole(store: Store) -> None:
    claim = await start(store)
    long = "x" * 200_000
    await apply(store, transition.retrying(claim, Reason.FAILED, Failure("E", long, long), timedelta(0)))
    [attempt] = await store.attempts(claim.job_id)
    assert (attempt.message, attempt.traceback) == (long, long)
    claim = await claim_one(store, await employ(store))
    await apply(store, transition.succeeded(claim, f'"{long}"', ()))
    assert (await show(store, claim.job_id)).result == f'"{long}"'


async def test_any_store_may_acknowledge_for_the_claimant(store: Store, other_store: OpenStore) -> None:
    """The token is the right to write; a rescuer holds none, but reads it from the lease."""
    claim = await start(store)
    await apply(await other_store(), transition.succeeded(claim, None, ()))
    assert await state_of(store, claim.job_id) is JobState.SUCCEEDED


async def test_a_worker_declared_dead_may_still_acknowledge_jobs_that_were_not_rescued(store: Store) -> None:
    """Death frees the job for rescue; until that has happened, the claim is held and its word counts."""
    worker_id = await employ(store)
    await enqueue(store)
    claim = await claim_one(store, worker_id)
    await store.retire(worker_id)
    await apply(store, transition.succeeded(claim, None, ()))
    assert await store.orphans(10) == []


@pytest.mark.parametrize("state", [JobState.READY, JobState.RETRYING, JobState.WAITING, JobState.PAUSED])
async def test_a_job_that_was_called_off_does_not_come_back(store: Store, state: JobState) -> None:
    """Released, failed or parked before its worker heard of the cancel: it is cancelled, and its key is free."""
    claim = await start(store, unique=a_key())
    await store.cancel(JobFilter(ids=(claim.job_id,)), By("ops", "not needed"), 1)
    await apply(store, ending_in(state, claim))
    view = await show(store, claim.job_id)
    assert (view.state, view.reason, view.due_at) == (JobState.CANCELLED, "cancelled: not needed", None)
    assert len(await store.attempts(claim.job_id)) == (1 if state is JobState.RETRYING else 0)
    [receipt] = await store.insert([a_job(unique=a_key())])
    assert receipt.intake is Intake.NEW


@pytest.mark.parametrize("state", [JobState.SUCCEEDED, JobState.DEAD])
async def test_a_job_that_ended_before_it_could_be_called_off_has_ended(store: Store, state: JobState) -> None:
    claim = await start(store)
    await store.cancel(JobFilter(ids=(claim.job_id,)), By("ops", "too late"), 1)
    await apply(store, ending_in(state, claim))
    assert await state_of(store, claim.job_id) is state


async def test_f6_since_when_a_kind_is_unknown_is_stored_until_a_worker_knows_it(
    store: Store, clock: ManualClock
) -> None:
    """The day after which it dies counts from the first worker without a handler, not from when the job was due."""
    claim = await start(store)
    assert claim.unknown_since is None
    first_seen = clock.now()
    for _ in range(2):
        await apply(store, transition.paused(claim, Reason.UNKNOWN_KIND, MINUTE))
        clock.move(HOUR)
        await store.promote(10)
        claim = await claim_one(store, await employ(store))
        assert claim.unknown_since == first_seen
    await apply(store, transition.retrying(claim, Reason.FAILED, A_FAILURE, MINUTE))
    clock.move(HOUR)
    await store.promote(10)
    assert (await claim_one(store, await employ(store))).unknown_since is None


async def test_after_a_failure_the_limit_shown_is_that_of_the_rule_that_judged_it(store: Store) -> None:
    claim = await start(store, max_attempts=9)
    assert (await show(store, claim.job_id)).max_attempts == 9
    await apply(store, transition.retrying(claim, Reason.FAILED, A_FAILURE, timedelta(0), 3))
    assert (await show(store, claim.job_id)).max_attempts == 3
    again = await claim_one(store, await employ(store))
    await apply(store, transition.retrying(again, Reason.FAILED, A_FAILURE, HOUR, 0))
    assert (await show(store, claim.job_id)).max_attempts is None, "the rule sets no limit"


async def test_a_crash_and_a_new_life_show_the_limit_of_the_job(store: Store) -> None:
    claim = await start(store, max_attempts=9)
    await apply(store, transition.crashed(claim, A_FAILURE))
    assert (await show(store, claim.job_id)).max_attempts == 9
    again = await claim_one(store, await employ(store))
    await apply(store, transition.died(again, Reason.EXHAUSTED, A_FAILURE, 1))
    assert (await show(store, claim.job_id)).max_attempts == 1
    await store.requeue(JobFilter(ids=(claim.job_id,)), By("ada"), 1)
    assert (await show(store, claim.job_id)).max_attempts == 9

"""The fence around every acknowledgement: id and token, or nothing at all (F5, G3)."""

from __future__ import annotations

from typing import Final

import pytest
from msgspec.structs import replace
from tests.support.builders.jobs import (
    A_FAILURE,
    MINUTE,
    a_job,
    apply,
    claim_one,
    employ,
    numbered_id,
    show,
    start,
    state_of,
)
from tests.support.builders.transitions import EVERY_TRANSITION, Decision

from perdure.domain.jobs import transition
from perdure.domain.jobs.states import JobState, Reason
from perdure.domain.operate.audit import By
from perdure.storage.port import Store
from perdure.storage.records import Acknowledged, JobFilter, Wanted

SOME: Final = ("succeeded", "succeeded without a result", "failed", "released")
some_transitions = pytest.mark.parametrize("decide", [EVERY_TRANSITION[name] for name in SOME], ids=SOME)
each_transition = pytest.mark.parametrize("decide", EVERY_TRANSITION.values(), ids=EVERY_TRANSITION.keys())


@each_transition
async def test_f5_a_stale_claim_changes_nothing_and_is_reported(store: Store, decide: Decision) -> None:
    """The job was given back and runs again: the first attempt's late word is refused, and so are its traces."""
    late = await start(store)
    await apply(store, transition.released(late))
    held = await claim_one(store, await employ(store))
    before = await show(store, late.job_id)
    assert await store.acknowledge([decide(late)]) == Acknowledged(applied=0, stale=(late,))
    assert await show(store, late.job_id) == before
    assert await store.attempts(late.job_id) == []
    assert await store.acknowledge([transition.succeeded(held, None, ())]) == Acknowledged(applied=1)


@each_transition
async def test_f5_a_claim_already_acknowledged_is_stale(store: Store, decide: Decision) -> None:
    claim = await start(store)
    move = decide(claim)
    await apply(store, move)
    before, attempts = await show(store, claim.job_id), await store.attempts(claim.job_id)
    assert await store.acknowledge([move]) == Acknowledged(applied=0, stale=(claim,))
    assert await show(store, claim.job_id) == before
    assert await store.attempts(claim.job_id) == attempts


@pytest.mark.parametrize("error", [-1, 1, 1_000])
async def test_f5_the_token_must_match_to_the_unit(store: Store, error: int) -> None:
    claim = await start(store)
    forged = replace(claim, token=claim.token + error)
    answer = await store.acknowledge([transition.succeeded(forged, None, ())])
    assert answer == Acknowledged(applied=0, stale=(forged,))
    assert await state_of(store, claim.job_id) is JobState.RUNNING


async def test_f5_the_id_must_match_as_well_as_the_token(store: Store) -> None:
    first, second = await start(store), await start(store, queue="other")
    crossed = replace(first, job_id=numbered_id(1))
    assert (await store.acknowledge([transition.succeeded(crossed, None, ())])).stale == (crossed,)
    assert await state_of(store, first.job_id) is JobState.RUNNING
    assert await state_of(store, second.job_id) is JobState.RUNNING


async def test_f5_a_deleted_job_is_stale(store: Store) -> None:
    claim = await start(store)
    await apply(store, transition.succeeded(claim, None, ()))
    assert await store.purge(JobFilter(), By("ops"), 10) == [claim.job_id]
    answer = await store.acknowledge([transition.retrying(claim, Reason.FAILED, A_FAILURE, MINUTE)])
    assert answer.stale == (claim,)
    assert await store.job(claim.job_id) is None
    assert await store.attempts(claim.job_id) == []


async def test_f5_one_claim_twice_in_a_batch_applies_once(store: Store) -> None:
    claim = await start(store)
    answer = await store.acknowledge([transition.succeeded(claim, "1", ()), transition.released(claim)])
    assert answer == Acknowledged(applied=1, stale=(claim,))
    view = await show(store, claim.job_id)
    assert (view.state, view.result) == (JobState.SUCCEEDED, "1")


@some_transitions
async def test_f5_one_move_twice_in_a_batch_applies_once(store: Store, decide: Decision) -> None:
    claim = await start(store)
    assert await store.acknowledge([decide(claim), decide(claim)]) == Acknowledged(applied=1, stale=(claim,))
    assert await state_of(store, claim.job_id) is decide(claim).to
    assert len(await store.attempts(claim.job_id)) == (1 if decide(claim).failure else 0)


@pytest.mark.parametrize("late_first", [True, False], ids=["late first", "late last"])
@some_transitions
async def test_f5_a_batch_may_hold_a_late_claim_beside_the_live_one(
    store: Store, decide: Decision, late_first: bool
) -> None:
    """A worker that lost a job and got it again hands in both attempts at once."""
    late = await start(store)
    await apply(store, transition.released(late))
    held = await claim_one(store, await employ(store))
    moves = [decide(late), decide(held)] if late_first else [decide(held), decide(late)]
    assert await store.acknowledge(moves) == Acknowledged(applied=1, stale=(late,))
    assert await state_of(store, held.job_id) is decide(held).to


@some_transitions
async def test_f5_a_late_claim_does_not_pass_by_the_token_of_another_job_in_its_batch(
    store: Store, decide: Decision
) -> None:
    """It runs again under a token that it shares with another job, which is handed in beside the late word."""
    late = await start(store)
    await apply(store, transition.released(late))
    await store.insert([a_job()])
    claims = await store.claim(await employ(store), [Wanted("default", 2)])
    [beside] = [claim for claim in claims if claim.job_id != late.job_id]
    assert len({claim.token for claim in claims}) == 1, "one token for all of a batch makes the two alike"
    answer = await store.acknowledge([decide(late), decide(beside)])
    assert answer == Acknowledged(applied=1, stale=(late,))
    assert await state_of(store, late.job_id) is JobState.RUNNING
    assert await state_of(store, beside.job_id) is decide(beside).to

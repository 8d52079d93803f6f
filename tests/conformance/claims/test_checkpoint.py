"""ClaimStore.checkpoint: how far a job has come is kept for its next attempt, by whoever holds the job (C1)."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest
from msgspec.structs import replace
from tests.conftest import OpenStore
from tests.support.builders.jobs import (
    A_FAILURE,
    DAY,
    HOSTILE,
    HOUR,
    a_key,
    apply,
    claim_one,
    employ,
    ending_in,
    enqueue,
    job_in,
    numbered_id,
    only,
    show,
    start,
)

from perdure.clock import ManualClock
from perdure.domain.jobs import transition
from perdure.domain.jobs.states import FINAL, PARKED, JobState, Reason
from perdure.domain.operate.audit import By
from perdure.storage.port import Store
from perdure.storage.records import Acknowledged

LEASE = timedelta(seconds=30)
CURSOR = '{"page":7}'


async def test_a_job_begins_without_a_cursor(store: Store) -> None:
    claim = await start(store)
    assert claim.cursor is None
    assert (await show(store, claim.job_id)).cursor is None


async def test_c1_a_checkpoint_is_seen_at_once_and_the_last_one_counts(store: Store) -> None:
    claim = await start(store)
    assert await store.checkpoint(claim, '{"page":1}')
    assert await store.checkpoint(claim, CURSOR)
    view = await show(store, claim.job_id)
    assert (view.cursor, view.state) == (CURSOR, JobState.RUNNING)


async def test_c1_a_checkpoint_can_be_taken_back(store: Store) -> None:
    claim = await start(store)
    await store.checkpoint(claim, CURSOR)
    assert await store.checkpoint(claim, None)
    await apply(store, transition.released(claim))
    assert (await claim_one(store, await employ(store))).cursor is None


@pytest.mark.parametrize("text", HOSTILE)
async def test_a_cursor_is_kept_as_it_is(store: Store, text: str) -> None:
    claim = await start(store)
    await store.checkpoint(claim, text)
    await apply(store, transition.released(claim))
    assert (await claim_one(store, await employ(store))).cursor == text


async def test_c1_a_released_job_goes_on_from_its_cursor(store: Store) -> None:
    claim = await start(store, tags=("a", "b"), meta='{"x":1}', unique=a_key())
    await store.checkpoint(claim, CURSOR)
    await apply(store, transition.released(claim))
    again = await claim_one(store, await employ(store))
    assert (again.cursor, again.failures, again.crashes) == (CURSOR, 0, 0)
    assert (again.tags, again.meta, again.unique) == (claim.tags, claim.meta, claim.unique)


@pytest.mark.parametrize("state", sorted(PARKED - {JobState.SCHEDULED}))
async def test_c1_a_parked_job_goes_on_from_its_cursor(store: Store, clock: ManualClock, state: JobState) -> None:
    claim = await start(store)
    await store.checkpoint(claim, CURSOR)
    await apply(store, ending_in(state, claim))
    assert (await show(store, claim.job_id)).cursor == CURSOR
    clock.move(HOUR)
    assert (await store.promote(10)).total == 1
    assert (await claim_one(store, await employ(store))).cursor == CURSOR


async def test_c1_an_orphan_carries_its_cursor(store: Store, clock: ManualClock) -> None:
    """Whoever rescues it can tell that it has come some way, and its next attempt goes on from there."""
    claim = await start(store)
    await store.checkpoint(claim, CURSOR)
    clock.move(HOUR)
    await store.bury_silent(LEASE)
    [orphan] = await store.orphans(10)
    assert orphan.claim == replace(claim, cursor=CURSOR, is_fresh=False)
    await apply(store, transition.crashed(orphan.claim, A_FAILURE))
    again = await claim_one(store, await employ(store))
    assert (again.cursor, again.crashes) == (CURSOR, 1)


@pytest.mark.parametrize("state", sorted(FINAL))
async def test_c1_a_requeued_job_goes_on_from_its_cursor(store: Store, state: JobState) -> None:
    claim = await start(store)
    await store.checkpoint(claim, CURSOR)
    await apply(store, ending_in(state, claim))
    assert (await show(store, claim.job_id)).cursor == CURSOR
    assert await store.requeue(only(claim.job_id), By("ops"), 1) == [claim.job_id]
    assert (await claim_one(store, await employ(store))).cursor == CURSOR


async def test_a_cursor_is_one_jobs_own(store: Store) -> None:
    claim = await start(store)
    other = await enqueue(store)
    await store.checkpoint(claim, CURSOR)
    assert (await show(store, other)).cursor is None


async def test_g3_a_lost_claim_writes_no_checkpoint(store: Store) -> None:
    late = await start(store)
    await store.checkpoint(late, CURSOR)
    await apply(store, transition.released(late))
    assert not await store.checkpoint(late, '{"page":8}')
    held = await claim_one(store, await employ(store))
    assert not await store.checkpoint(late, '{"page":9}')
    assert (await show(store, late.job_id)).cursor == CURSOR
    assert await store.checkpoint(held, '{"page":10}')
    assert (await show(store, late.job_id)).cursor == '{"page":10}'


async def test_g3_a_lost_claim_is_reported_so_beside_the_live_one_of_the_same_job(store: Store) -> None:
    """Both at once, as when a worker that was declared dead and its successor share a process."""
    lost = await start(store)
    await apply(store, transition.released(lost))
    live = await claim_one(store, await employ(store))
    kept = await asyncio.gather(*(store.checkpoint(claim, CURSOR) for claim in (live, lost, live, lost)))
    assert kept == [True, False, True, False]


@pytest.mark.parametrize("error", [-1, 1, 1_000])
async def test_g3_the_token_must_match_to_the_unit(store: Store, error: int) -> None:
    claim = await start(store)
    assert not await store.checkpoint(replace(claim, token=claim.token + error), CURSOR)
    assert not await store.checkpoint(replace(claim, job_id=numbered_id(1)), CURSOR)
    assert (await show(store, claim.job_id)).cursor is None


@pytest.mark.parametrize("state", sorted(frozenset(JobState) - {JobState.RUNNING}))
async def test_g3_a_job_that_does_not_run_takes_no_checkpoint(store: Store, state: JobState) -> None:
    template = await start(store, queue="elsewhere")
    job_id = await job_in(state, store)
    for token in (*range(10), *range(template.token - 10, template.token + 10)):
        assert not await store.checkpoint(replace(template, job_id=job_id, token=token), CURSOR)
    assert (await show(store, job_id)).cursor is None


async def test_a_job_that_is_asked_to_stop_may_still_keep_how_far_it_came(store: Store) -> None:
    claim = await start(store)
    await store.cancel(only(claim.job_id), By("ops", "no need"), 1)
    assert await store.checkpoint(claim, CURSOR)
    assert (await show(store, claim.job_id)).cursor == CURSOR


async def test_g3_a_checkpoint_and_the_end_of_its_claim_are_one_after_the_other(
    store: Store, other_store: OpenStore
) -> None:
    """Whoever is told True has written while the claim was held; whoever is told False has written nothing."""
    other = await other_store()
    worker_id = await employ(store)
    for number in range(20):
        job_id = await enqueue(store)
        claim = await claim_one(store, worker_id)
        kept, acknowledged = await asyncio.gather(
            store.checkpoint(claim, f'"{number}"'), other.acknowledge([transition.released(claim)])
        )
        assert acknowledged == Acknowledged(applied=1)
        again = await claim_one(store, worker_id)
        assert (again.job_id, again.cursor) == (job_id, f'"{number}"' if kept else None)
        await apply(store, transition.succeeded(again, None, ()))


async def test_a_cursor_goes_with_its_job(store: Store, clock: ManualClock) -> None:
    claim = await start(store)
    await store.checkpoint(claim, CURSOR)
    await apply(store, transition.died(claim, Reason.EXHAUSTED, A_FAILURE))
    clock.move(DAY)
    assert await store.purge(only(claim.job_id), By("ops"), 1) == [claim.job_id]
    fresh = await start(store, id=claim.job_id)
    assert fresh.cursor is None

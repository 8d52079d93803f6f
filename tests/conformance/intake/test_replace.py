"""Unique keys with on_conflict=replace: the newest arguments win."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from tests.support.builders.jobs import (
    HOUR,
    a_job,
    a_key,
    apply,
    claim_one,
    claim_some,
    employ,
    job_in,
    second_comer,
    show,
    start,
)

from perdure.clock import ManualClock
from perdure.domain.flows.flow import StepKind, StepRecord, StepState, StepWrite
from perdure.domain.jobs import transition
from perdure.domain.jobs.job import Intake, OnConflict
from perdure.domain.jobs.states import FINAL, PARKED, JobState
from perdure.storage.port import Store
from perdure.storage.records import JobFilter, Page

ALL = frozenset(JobState)


@pytest.mark.parametrize("state", sorted(PARKED | {JobState.READY}))
async def test_replace_gives_a_job_not_yet_running_the_new_arguments(store: Store, state: JobState) -> None:
    holder = await job_in(state, store, unique=a_key())
    before = await show(store, holder)
    assert await second_comer(store, OnConflict.REPLACE) == (holder, Intake.REPLACED)
    after = await show(store, holder)
    assert after.args == '{"name":"Eve"}'
    assert after == replace(before, args=after.args)
    assert len(await store.jobs(JobFilter(), Page())) == 1


@pytest.mark.parametrize("state", sorted(PARKED | {JobState.READY}))
async def test_replace_gives_the_new_priority_and_leaves_the_job_where_it_stands(store: Store, state: JobState) -> None:
    holder = await job_in(state, store, unique=a_key())
    before = await show(store, holder)
    await store.insert([a_job(priority=1, unique=a_key(on_conflict=OnConflict.REPLACE))])
    assert await show(store, holder) == replace(before, priority=1)


@pytest.mark.parametrize("state", sorted(PARKED | {JobState.READY}))
async def test_replace_with_a_time_of_its_own_moves_the_job_there(
    store: Store, clock: ManualClock, state: JobState
) -> None:
    """So a job can be put off as long as news keeps coming."""
    holder = await job_in(state, store, unique=a_key())
    newcomer = a_job(args='{"name":"Eve"}', delay=2 * HOUR, unique=a_key(on_conflict=OnConflict.REPLACE))
    [receipt] = await store.insert([newcomer])
    assert (receipt.job_id, receipt.intake) == (holder, Intake.REPLACED)
    view = await show(store, holder)
    assert (view.args, view.due_at) == ('{"name":"Eve"}', clock.now() + 2 * HOUR)
    assert view.state is (JobState.SCHEDULED if state is JobState.READY else state)
    assert await claim_some(store, await employ(store)) == []
    clock.move(2 * HOUR)
    assert (await store.promote(10)).total == 1


async def test_replace_forgets_how_far_the_job_came_with_its_old_arguments(store: Store) -> None:
    claim = await start(store, unique=a_key())
    await store.checkpoint(claim, '{"page":7}')
    step = StepRecord(key="s", kind=StepKind.CALL, state=StepState.DONE, begun_at=claim.claimed_at)
    assert await store.save_steps([StepWrite(claim, step)]) == [True]
    await apply(store, transition.released(claim))
    assert await second_comer(store, OnConflict.REPLACE) == (claim.job_id, Intake.REPLACED)
    assert (await show(store, claim.job_id)).cursor is None
    assert await store.steps([claim.job_id]) == {}


async def test_replaced_arguments_are_what_the_claim_carries(store: Store) -> None:
    await job_in(JobState.READY, store, unique=a_key())
    await second_comer(store, OnConflict.REPLACE)
    assert (await claim_one(store, await employ(store))).args == '{"name":"Eve"}'


async def test_replace_takes_the_key_from_a_running_job(store: Store) -> None:
    """The running job goes on with the arguments it has; the newcomer is a job of its own and holds the key."""
    running = await start(store, unique=a_key())
    newcomer, intake = await second_comer(store, OnConflict.REPLACE)
    assert intake is Intake.NEW
    assert newcomer != running.job_id
    assert (await show(store, running.job_id)).args == running.args
    assert await second_comer(store) == (newcomer, Intake.EXISTING)
    await apply(store, transition.succeeded(running, None, ()))
    assert await second_comer(store) == (newcomer, Intake.EXISTING)


@pytest.mark.parametrize("state", sorted(FINAL))
async def test_replace_never_rewrites_a_finished_job(store: Store, state: JobState) -> None:
    """A record of the past stays as it was: the key passes on to a new job."""
    holder = await job_in(state, store, unique=a_key(states=ALL))
    before = await show(store, holder)
    newcomer, intake = await second_comer(store, OnConflict.REPLACE)
    assert intake is Intake.NEW
    assert await show(store, holder) == before
    assert await second_comer(store) == (newcomer, Intake.EXISTING)


async def test_the_last_of_one_batch_with_one_key_replaces_the_first(store: Store) -> None:
    key = a_key(on_conflict=OnConflict.REPLACE)
    receipts = await store.insert([a_job(unique=key), a_job(args='{"name":"Eve"}', unique=key)])
    assert [receipt.intake for receipt in receipts] == [Intake.NEW, Intake.REPLACED]
    assert receipts[0].job_id == receipts[1].job_id
    assert (await show(store, receipts[0].job_id)).args == '{"name":"Eve"}'

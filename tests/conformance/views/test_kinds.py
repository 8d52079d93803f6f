"""KindStore: what apps declare of their kinds, and what follows for views and for what is pruned."""

from __future__ import annotations

from datetime import timedelta

import pytest
from tests.support.builders.families import as_parent, start_parent
from tests.support.builders.jobs import (
    A_FAILURE,
    DAY,
    HOUR,
    SECOND,
    a_job,
    apply,
    claim_one,
    claim_some,
    employ,
    job_in,
    show,
)

from perdure.clock import ManualClock
from perdure.domain.declared_limits import BreakerLimit, BudgetLimit, RateLimit, SlotLimit
from perdure.domain.jobs import transition
from perdure.domain.jobs.ids import JobId
from perdure.domain.jobs.states import FINAL, JobState, Reason
from perdure.domain.operate.audit import By
from perdure.operate.desk import Desk
from perdure.storage.operate.kinds import KindRecord
from perdure.storage.port import Store
from perdure.storage.records import JobFilter, Keep, Page

FLAGS = KindRecord(name="greet", keep=Keep(succeeded=90 * DAY, cancelled=30 * DAY, dead=None))
BRIEFLY = KindRecord(name="greet", keep=Keep(succeeded=HOUR, cancelled=HOUR, dead=HOUR))
WEEK = Keep(succeeded=7 * DAY, cancelled=7 * DAY, dead=7 * DAY)
FOR_EVER = Keep(succeeded=None, cancelled=None, dead=None)


async def left(store: Store) -> set[JobId]:
    return {view.id for view in await store.jobs(JobFilter(), Page(500))}


async def test_declared_limits_are_kept_for_tools_without_the_code(store: Store) -> None:
    limits = (
        RateLimit(n=6, per=timedelta(minutes=1), by="tenant", spread=True),
        SlotLimit(n=2, name="gpu"),
        BudgetLimit(name="tokens", daily=500.0),
        BreakerLimit(name="bank", failures=3, window=timedelta(minutes=1), open_for=timedelta(minutes=5)),
    )
    record = KindRecord(name="summarise", limits=limits)
    await store.declare_kinds([record])
    assert await store.kinds() == [record]
    assert await Desk(store, "ada").limits() == {"summarise": limits}
    await store.declare_kinds([KindRecord(name="summarise", limits=limits[:1])])
    assert await Desk(store, "ada").limits() == {"summarise": limits[:1]}
    await store.declare_kinds([KindRecord(name="summarise")])
    assert await store.kinds() == []


async def test_what_is_declared_is_kept_changed_and_forgotten(store: Store) -> None:
    words = KindRecord(name="alert", words={"succeeded": "sent"})
    await store.declare_kinds([FLAGS, words, KindRecord(name="silent")])
    assert await store.kinds() == [words, FLAGS]
    await store.declare_kinds([KindRecord(name="alert", words={"succeeded": "delivered"})])
    assert await store.kinds() == [KindRecord(name="alert", words={"succeeded": "delivered"}), FLAGS]
    await store.declare_kinds([KindRecord(name="alert"), KindRecord(name="greet")])
    assert await store.kinds() == []


async def test_f4_a_view_shows_the_apps_word_for_the_state(store: Store) -> None:
    words = {state.value: f"my {state}" for state in JobState}
    await store.declare_kinds([KindRecord(name="greet", words=words)])
    for state in JobState:
        job_id = await job_in(state, store, queue=f"q-{state}")
        assert (await show(store, job_id)).word == f"my {state}"
    [receipt] = await store.insert([a_job(kind="other")])
    assert (await show(store, receipt.job_id)).word is None


@pytest.mark.parametrize("state", sorted(FINAL))
async def test_a_kind_keeps_its_jobs_longer_than_others_are_kept(
    store: Store, clock: ManualClock, state: JobState
) -> None:
    await store.declare_kinds([FLAGS])
    own = await job_in(state, store)
    other = await job_in(state, store, kind="other")
    clock.move(7 * DAY + SECOND)
    assert await store.prune(WEEK, 100) == 1
    assert await left(store) == {own}
    assert await store.prune(WEEK, 100) == 0
    clock.move(100 * DAY)
    assert await store.prune(WEEK, 100) == (0 if state is JobState.DEAD else 1)
    assert other not in await left(store)


@pytest.mark.parametrize("state", sorted(FINAL))
async def test_a_kind_keeps_its_jobs_shorter_than_others_are_kept(
    store: Store, clock: ManualClock, state: JobState
) -> None:
    await store.declare_kinds([BRIEFLY])
    await job_in(state, store)
    other = await job_in(state, store, kind="other")
    clock.move(HOUR + SECOND)
    assert await store.prune(FOR_EVER, 100) == 1
    assert await left(store) == {other}


async def test_a_worker_without_the_code_prunes_by_the_kinds_own_time(store: Store, clock: ManualClock) -> None:
    """Another process has declared it, and this one only prunes."""
    declaring = store.sibling()
    await declaring.open()
    try:
        await declaring.declare_kinds([FLAGS])
        own = await job_in(JobState.SUCCEEDED, declaring)
    finally:
        await declaring.close()
    clock.move(30 * DAY)
    assert await store.prune(WEEK, 100) == 0
    assert await left(store) == {own}


async def test_every_way_to_end_goes_by_the_kinds_own_time(store: Store, clock: ManualClock) -> None:
    """By acknowledgements of each sort, by an operator, by a rescue, by the parent's end."""
    await store.declare_kinds([BRIEFLY])
    worker_id = await employ(store)
    await store.insert([a_job() for _ in range(6)])
    one, two, three, four, five, _ = await claim_some(store, worker_id, 6)
    await apply(store, transition.succeeded(one, None, ()))
    await apply(store, transition.succeeded(two, '"a result"', ("a warning",)))
    await apply(
        store,
        transition.died(three, Reason.PERMANENT, A_FAILURE),
        transition.cancelled(four, None),
        transition.succeeded(five, None, ()),
    )
    await store.retire(worker_id)
    [orphan] = await store.orphans(10)
    await apply(store, transition.crashed_for_good(orphan.claim, A_FAILURE))
    await store.insert([a_job(), a_job(delay=HOUR)])
    assert len(await store.cancel(JobFilter(states=frozenset({JobState.READY, JobState.SCHEDULED})), By("ada"), 9)) == 2
    assert len(await left(store)) == 8
    clock.move(HOUR + SECOND)
    assert await store.prune(FOR_EVER, 100) == 8


async def test_children_that_end_with_their_parent_go_by_their_kinds_own_time(store: Store, clock: ManualClock) -> None:
    parent, ids = await start_parent(store)
    kinds = {(await show(store, job_id)).kind for job_id in ids}
    await store.declare_kinds([KindRecord(name=kind, keep=BRIEFLY.keep) for kind in kinds])
    await apply(store, as_parent(transition.succeeded(parent, None, ())))
    assert {(await show(store, job_id)).state for job_id in ids} == {JobState.CANCELLED}
    clock.move(HOUR + SECOND)
    assert await store.prune(FOR_EVER, 100) == len(ids)
    assert await left(store) == {parent.job_id}


async def test_jobs_that_ended_before_their_kind_said_so_are_kept_longer_too(store: Store, clock: ManualClock) -> None:
    own = await job_in(JobState.SUCCEEDED, store)
    await store.declare_kinds([FLAGS])
    clock.move(8 * DAY)
    assert await store.prune(WEEK, 100) == 0
    assert await left(store) == {own}
    clock.move(83 * DAY)
    assert await store.prune(WEEK, 100) == 1


async def test_a_kind_that_says_no_more_goes_by_the_time_of_all(store: Store, clock: ManualClock) -> None:
    await store.declare_kinds([FLAGS])
    await job_in(JobState.SUCCEEDED, store)
    clock.move(8 * DAY)
    assert await store.prune(WEEK, 100) == 0
    await store.declare_kinds([KindRecord(name="greet")])
    assert await store.prune(WEEK, 100) == 1


async def test_what_is_kept_does_not_hold_up_what_is_not(store: Store, clock: ManualClock) -> None:
    """Far more jobs of the kind lie in front than one look takes; and the next tick does not look at them again."""
    await store.declare_kinds([FLAGS])
    worker_id = await employ(store)
    for kind in ("greet", "other", "greet", "other"):
        await store.insert([a_job(kind=kind) for _ in range(25)])
        await apply(store, *(transition.succeeded(claim, None, ()) for claim in await claim_some(store, worker_id)))
        clock.move(SECOND)
    clock.move(8 * DAY)
    ticks = [await store.prune(WEEK, 10) for _ in range(8)]
    assert sum(ticks) == 50
    assert max(ticks) <= 10
    assert len(await left(store)) == 50


async def test_a_job_that_lives_again_is_kept_from_its_last_end_on(store: Store, clock: ManualClock) -> None:
    await store.declare_kinds([BRIEFLY])
    job_id = await job_in(JobState.DEAD, store)
    clock.move(timedelta(minutes=59))
    await store.requeue(JobFilter(ids=(job_id,)), By("ada"), 1)
    claim = await claim_one(store, await employ(store))
    await apply(store, transition.succeeded(claim, None, ()))
    clock.move(timedelta(minutes=59))
    assert await store.prune(FOR_EVER, 100) == 0
    clock.move(2 * timedelta(minutes=1))
    assert await store.prune(FOR_EVER, 100) == 1

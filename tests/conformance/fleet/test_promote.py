"""UpkeepStore.promote: parked jobs whose time has come."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest
from msgspec.structs import replace
from tests.conftest import OpenStore
from tests.support.builders.jobs import (
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
    job_in,
    show,
    start,
    state_of,
)
from tests.support.databases.behind import query

from perdure.clock import ManualClock
from perdure.domain.flows.flow import Awaits, NewFamily
from perdure.domain.jobs import transition
from perdure.domain.jobs.ids import JobId
from perdure.domain.jobs.job import Claim, Intake
from perdure.domain.jobs.states import PARKED, JobState, Reason
from perdure.domain.operate.audit import By
from perdure.errors import PerdureError
from perdure.storage.port import Store
from perdure.storage.records import JobFilter, Page, Promoted

ALL = frozenset(JobState)
HELD_FOR = timedelta(seconds=30)


async def test_an_empty_store_has_nothing_to_promote(store: Store) -> None:
    assert await store.promote(10) == Promoted({}, None)


@pytest.mark.parametrize("state", sorted(PARKED))
async def test_a_parked_job_becomes_ready_at_its_time_and_not_before(
    store: Store, clock: ManualClock, state: JobState
) -> None:
    job_id = await job_in(state, store)
    due_at = clock.now() + HOUR
    clock.move(HOUR - INSTANT)
    assert await store.promote(10) == Promoted({}, due_at, INSTANT)
    assert await state_of(store, job_id) is state
    clock.move(INSTANT)
    assert await store.promote(10) == Promoted({"default": 1}, None)
    view = await show(store, job_id)
    assert (view.state, view.reason, view.due_at) == (JobState.READY, Reason.DUE, None)
    assert (await claim_one(store, await employ(store))).job_id == job_id


async def test_a_job_paused_until_resumed_stays(store: Store, clock: ManualClock) -> None:
    claim = await start(store)
    await apply(store, transition.paused(claim, Reason.PAUSED, None))
    clock.move(timedelta(days=3_650))
    assert await store.promote(10) == Promoted({}, None)
    assert await state_of(store, claim.job_id) is JobState.PAUSED


async def test_b2_what_is_due_is_taken_earliest_first_and_so_many_a_run(store: Store, clock: ManualClock) -> None:
    minutes = [7, 2, 9, 1, 5]
    ids = {minute: await enqueue(store, delay=minute * MINUTE, priority=minute) for minute in minutes}
    start_at = clock.now()
    clock.move(HOUR)
    assert await store.promote(2) == Promoted({"default": 2}, start_at + 5 * MINUTE, 5 * MINUTE - HOUR)
    ready = await store.jobs(JobFilter(states=frozenset({JobState.READY})), Page())
    assert {view.id for view in ready} == {ids[1], ids[2]}
    assert (await store.promote(2)).total == 2
    assert await store.promote(2) == Promoted({"default": 1}, None)


async def test_promoted_jobs_are_counted_by_queue(store: Store, clock: ManualClock) -> None:
    await store.insert([a_job(queue=queue, delay=MINUTE) for queue in ("a", "b", "a", "it's")])
    await enqueue(store, queue="b", delay=HOUR)
    clock.move(MINUTE)
    promoted = await store.promote(10)
    assert promoted.by_queue == {"a": 2, "b": 1, "it's": 1}
    assert promoted.total == 4
    assert promoted.next_due == clock.now() + HOUR - MINUTE


async def test_c12_a_scheduled_life_begins_when_it_is_due(store: Store, clock: ManualClock) -> None:
    """A promoter that comes late does not make the job younger."""
    await enqueue(store, delay=MINUTE)
    due_at = clock.now() + MINUTE
    clock.move(HOUR)
    await store.promote(10)
    assert (await claim_one(store, await employ(store))).since == due_at


async def test_counts_survive_the_wait(store: Store, clock: ManualClock) -> None:
    job_id = await job_in(JobState.RETRYING, store)
    clock.move(HOUR)
    await store.promote(10)
    claim = await claim_one(store, await employ(store))
    assert (claim.job_id, claim.failures, claim.attempt) == (job_id, 1, 2)


async def test_a_job_whose_key_is_held_by_another_stays_parked_for_30_seconds(store: Store, clock: ManualClock) -> None:
    claim = await start(store, unique=a_key(states=ALL - {JobState.WAITING}))
    await apply(store, transition.waiting(claim, Reason.SNOOZED, MINUTE))
    other = await start(store, unique=a_key())
    clock.move(MINUTE)
    promoted = await store.promote(10)
    assert promoted == Promoted({}, clock.now() + HELD_FOR, HELD_FOR)
    view = await show(store, claim.job_id)
    assert view.state is JobState.PAUSED
    assert view.reason.startswith(Reason.KEY_HELD)
    assert view.due_at == clock.now() + HELD_FOR
    await apply(store, transition.succeeded(other, None, ()))
    assert (await store.promote(10)).total == 0
    clock.move(HELD_FOR)
    assert (await store.promote(10)).total == 1
    [receipt] = await store.insert([a_job(unique=a_key())])
    assert (receipt.job_id, receipt.intake) == (claim.job_id, Intake.EXISTING)


async def test_a_key_that_is_free_again_makes_the_first_that_waits_for_it_due(store: Store, clock: ManualClock) -> None:
    """Only the first, who takes it; those who wait for another key go on waiting."""
    waiting = ALL - {JobState.WAITING}
    held: list[Claim] = []
    for key in ("a", "a", "b"):
        claim = await start(store, unique=a_key(key, states=waiting))
        await apply(store, transition.waiting(claim, Reason.SNOOZED, MINUTE))
        held.append(claim)
        clock.move(SECOND)
    holders = [await start(store, unique=a_key(key)) for key in ("a", "b")]
    clock.move(MINUTE)
    assert (await store.promote(10)).total == 0
    assert await store.hasten(["c"]) == 0
    await apply(store, transition.succeeded(holders[0], None, ()))
    assert await store.hasten(["a", "c"]) == 1
    assert (await store.promote(10)).by_queue == {"default": 1}
    states = [(await show(store, claim.job_id)).state for claim in held]
    assert states == [JobState.READY, JobState.PAUSED, JobState.PAUSED]


async def test_no_job_is_found_if_none_waits_for_a_key(store: Store) -> None:
    await enqueue(store, delay=MINUTE)
    assert await store.hasten(["a"]) == 0
    assert await store.hasten([]) == 0


async def test_a_page_full_of_held_jobs_does_not_stop_the_rest(store: Store, clock: ManualClock) -> None:
    """Those that must wait for their keys make room in the next call."""
    waiting = ALL - {JobState.WAITING}
    for number in range(4):
        claim = await start(store, unique=a_key(f"k{number}", states=waiting))
        await apply(store, transition.waiting(claim, Reason.SNOOZED, SECOND))
        await start(store, unique=a_key(f"k{number}"))
    free = await enqueue(store, delay=MINUTE)
    clock.move(MINUTE)
    for _ in range(5):
        await store.promote(1)
    assert await state_of(store, free) is JobState.READY


async def test_two_parked_jobs_with_one_key_come_back_one_at_a_time(store: Store, clock: ManualClock) -> None:
    ids = []
    for _ in range(2):
        claim = await start(store, unique=a_key(states=ALL - {JobState.WAITING}))
        await apply(store, transition.waiting(claim, Reason.SNOOZED, MINUTE))
        ids.append(claim.job_id)
    clock.move(MINUTE)
    assert (await store.promote(10)).total == 1
    assert sorted([await state_of(store, job_id) for job_id in ids]) == [JobState.PAUSED, JobState.READY]


async def test_a_key_of_the_dead_is_free_again_for_one_that_comes_back(store: Store, clock: ManualClock) -> None:
    """A hold that has run out does not keep a parked job from its key."""
    claim = await start(store, unique=a_key(states=ALL - {JobState.WAITING}))
    await apply(store, transition.waiting(claim, Reason.SNOOZED, HOUR))
    dead = await start(store, unique=a_key(dead_for=MINUTE))
    await apply(store, ending_in(JobState.DEAD, dead))
    clock.move(HOUR)
    assert (await store.promote(10)).total == 1


async def test_many_promoters_at_once_promote_each_job_once(
    store: Store, clock: ManualClock, other_store: OpenStore
) -> None:
    await store.insert([a_job(delay=MINUTE) for _ in range(100)])
    clock.move(HOUR)
    stores = [store, await other_store(), await other_store()]
    promoted = await asyncio.gather(*(one.promote(30) for one in stores * 3))
    promoted.append(await store.promote(100))
    assert sum(each.total for each in promoted) == 100


async def damaged(store: Store, engine_url: str, **changes: object) -> JobId:
    """A parked job that no store can make ready: its record has lost the key that it must hold."""
    job_id = await enqueue(store, unique=a_key("lost"), **changes)
    query(engine_url, "UPDATE {job} SET unique_key = NULL WHERE unique_key = 'lost'")
    return job_id


async def test_a8_jobs_can_be_promoted_one_by_one_past_one_that_cannot(
    store: Store, clock: ManualClock, engine_url: str
) -> None:
    bad = await damaged(store, engine_url, delay=MINUTE)
    good = [await enqueue(store, delay=MINUTE + number * SECOND) for number in range(3)]
    clock.move(HOUR)
    for only in (None, bad):
        with pytest.raises(PerdureError):
            await store.promote(10, only=only)
    assert (await store.promote(1, only=good[2])).by_queue == {"default": 1}
    assert [await state_of(store, job_id) for job_id in (bad, *good[:2])] == [JobState.SCHEDULED] * 3
    assert await store.promote(10, aside=[bad]) == Promoted({"default": 2}, None)


async def test_what_is_overdue_is_reported_oldest_first(store: Store, clock: ManualClock) -> None:
    due = [await enqueue(store, queue=f"q{number}", delay=number * MINUTE) for number in (3, 1, 2, 9)]
    began = clock.now()
    clock.move(3 * MINUTE)
    told = await store.overdue(10)
    assert [(job.job_id, job.queue) for job in told] == [(due[1], "q1"), (due[2], "q2"), (due[0], "q3")]
    assert told[0].due_at == began + MINUTE
    assert [job.job_id for job in await store.overdue(10, MINUTE)] == [due[1], due[2]]
    assert [job.job_id for job in await store.overdue(1, aside=[due[1]])] == [due[2]]


async def test_a_job_that_cannot_be_promoted_now_is_left_to_the_next_call(store: Store, clock: ManualClock) -> None:
    later = await enqueue(store, delay=HOUR)
    assert (await store.promote(1, only=later)).total == 0
    assert await state_of(store, later) is JobState.SCHEDULED


@pytest.mark.parametrize("way", ["event", "resume", "children"])
async def test_one_bad_row_does_not_keep_others_from_being_woken(
    store: Store, clock: ManualClock, engine_url: str, way: str
) -> None:
    """It stays parked and is due soon, so that the promoter reports it."""
    worker_id = await employ(store)
    await store.insert([a_job(), a_job(unique=a_key("lost"))])
    claims = [await claim_one(store, worker_id) for _ in range(2)]
    if way == "children":
        for claim in claims:
            assert await store.spawn(claim, NewFamily(key="f", children=(a_job(queue="children"),)))
        moves = [transition.parked(c, Reason.AWAITING_CHILDREN, None, Awaits(family="f"), None) for c in claims]
        await apply(store, *(replace(move, is_parent=True) for move in moves))
    elif way == "event":
        moves = [transition.parked(c, Reason.AWAITING_EVENT, None, Awaits(event="e"), None) for c in claims]
        await apply(store, *moves)
    else:
        await apply(store, *(transition.paused(c, Reason.ON_HOLD, None, "pause p1: a rest") for c in claims))
    query(engine_url, "UPDATE {job} SET unique_key = NULL WHERE unique_key = 'lost'")
    if way == "children":
        children = await claim_some(store, worker_id, queue="children")
        await apply(store, *(transition.succeeded(child, None, ()) for child in children))
    elif way == "event":
        assert (await store.emit("e", None, By("ann"))).woken == 1
    else:
        assert await store.resume(["p1"], By("ann")) == 1
    assert await state_of(store, claims[0].job_id) is JobState.READY
    clock.move(HELD_FOR)
    assert [job.job_id for job in await store.overdue(10)] == [claims[1].job_id]


async def test_a_key_that_is_free_wakes_its_waiter_beside_a_bad_row(
    store: Store, clock: ManualClock, engine_url: str
) -> None:
    waiting = ALL - {JobState.WAITING}
    held = []
    for key in ("lost", "a"):
        claim = await start(store, unique=a_key(key, states=waiting))
        await apply(store, transition.waiting(claim, Reason.SNOOZED, MINUTE))
        await start(store, unique=a_key(key))
        held.append(claim)
    clock.move(MINUTE)
    assert (await store.promote(10)).total == 0
    query(engine_url, "UPDATE {job} SET unique_key = NULL WHERE unique_key = 'lost'")
    assert await store.hasten(["a"]) == 1
    assert [job.job_id for job in await store.overdue(10)] == [held[1].job_id]

"""Fair shares for jobs that come back into the line: a job keeps its key for life, and takes turns each time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta

import pytest
from msgspec.structs import replace
from tests.conformance.claims.test_fairness import jobs_of, takers
from tests.support.builders.jobs import (
    A_FAILURE,
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
    enqueue,
    job_in,
    numbered_id,
    only,
    show,
)
from tests.support.databases.behind import query

from perdure.clock import ManualClock
from perdure.domain.flows.flow import Awaits
from perdure.domain.jobs import transition
from perdure.domain.jobs.ids import WorkerId
from perdure.domain.jobs.job import Claim, Intake, NewJob, OnConflict
from perdure.domain.jobs.states import JobState, Reason
from perdure.domain.jobs.transition import Transition
from perdure.domain.operate.audit import By
from perdure.storage.port import Store
from perdure.storage.records import JobFilter

BIG, SMALL = 300, 10
EVENT = "the outage is over"

WayBack = Callable[[Store, ManualClock, Sequence[Claim]], Awaitable[None]]


async def promote(store: Store, clock: ManualClock) -> None:
    clock.move(HOUR)
    while any((await store.promote(100)).by_queue.values()):
        pass


async def retried(store: Store, clock: ManualClock, claims: Sequence[Claim]) -> None:
    await apply(store, *(transition.retrying(claim, Reason.FAILED, A_FAILURE, MINUTE) for claim in claims))
    await promote(store, clock)


async def retried_at_once(store: Store, clock: ManualClock, claims: Sequence[Claim]) -> None:
    await apply(store, *(transition.retrying(claim, Reason.FAILED, A_FAILURE, timedelta(0)) for claim in claims))


async def held_by_a_gate(store: Store, clock: ManualClock, claims: Sequence[Claim]) -> None:
    await apply(store, *(transition.paused(claim, Reason.RATE_LIMITED, MINUTE) for claim in claims))
    await promote(store, clock)


async def run_now(store: Store, clock: ManualClock, claims: Sequence[Claim]) -> None:
    await apply(store, *(transition.waiting(claim, Reason.SNOOZED, HOUR) for claim in claims))
    assert len(await store.run_now(JobFilter(), By("ann"), 1_000)) == len(claims)


async def woken(store: Store, clock: ManualClock, claims: Sequence[Claim]) -> None:
    await apply(store, *map(awaiting, claims))
    assert (await store.emit(EVENT, None, By("ann"))).woken == len(claims)


async def woken_at_once(store: Store, clock: ManualClock, claims: Sequence[Claim]) -> None:
    await store.emit(EVENT, None, By("ann"))
    await apply(store, *map(awaiting, claims))


async def requeued(store: Store, clock: ManualClock, claims: Sequence[Claim]) -> None:
    await apply(store, *(transition.died(claim, Reason.EXHAUSTED, A_FAILURE) for claim in claims))
    assert len(await store.requeue(JobFilter(), By("ann"), 1_000)) == len(claims)


async def resumed(store: Store, clock: ManualClock, claims: Sequence[Claim]) -> None:
    await apply(store, *(transition.paused(claim, Reason.ON_HOLD, None, "pause p1: a rest") for claim in claims))
    assert await store.resume(["p1"], By("ann")) == len(claims)


def awaiting(claim: Claim) -> Transition:
    return transition.parked(claim, Reason.AWAITING_EVENT, None, Awaits(event=EVENT), None)


WAYS_BACK = [retried, retried_at_once, held_by_a_gate, run_now, woken, woken_at_once, requeued, resumed]


async def begin(store: Store, tenant: str | None, number: int) -> tuple[WorkerId, list[Claim]]:
    """Jobs of a tenant, all of them taken by one worker; the queue must be empty."""
    worker_id = await employ(store)
    await store.insert(in_order(jobs_of(tenant, number)))
    return worker_id, await claim_some(store, worker_id, number)


def in_order(jobs: Sequence[NewJob], first: int = 1) -> list[NewJob]:
    """The same jobs with ids that rise: of two that come back at one moment, the lower goes first."""
    return [replace(job, id=numbered_id(number)) for number, job in enumerate(jobs, start=first)]


@pytest.mark.parametrize("way_back", WAYS_BACK)
async def test_many_that_come_back_together_do_not_delay_anothers_few(
    store: Store, clock: ManualClock, way_back: WayBack
) -> None:
    worker_id, big = await begin(store, "big", BIG)
    await store.insert(in_order(jobs_of("small", SMALL), first=BIG + 1))
    small = await claim_some(store, worker_id, SMALL)
    await way_back(store, clock, [*big, *small])
    assert Counter(await takers(store, worker_id, 25))["small"] == SMALL
    assert Counter(await takers(store, worker_id, 1_000)) == {"big": BIG - 15}


@pytest.mark.parametrize("way_back", WAYS_BACK)
async def test_few_that_come_back_do_not_wait_for_anothers_many(
    store: Store, clock: ManualClock, way_back: WayBack
) -> None:
    worker_id, small = await begin(store, "small", SMALL)
    await store.insert(jobs_of("big", BIG))
    await store.insert(jobs_of(None, BIG, queue="other"))
    clock.move(MINUTE)
    await way_back(store, clock, small)
    assert Counter(await takers(store, worker_id, 25))["small"] == SMALL


@pytest.mark.parametrize("way_back", WAYS_BACK)
async def test_new_ones_do_not_wait_for_anothers_many_that_came_back(
    store: Store, clock: ManualClock, way_back: WayBack
) -> None:
    worker_id, big = await begin(store, "big", BIG)
    await way_back(store, clock, big)
    clock.move(SECOND)
    await store.insert(jobs_of("small", SMALL))
    assert Counter(await takers(store, worker_id, 25))["small"] == SMALL


@pytest.mark.parametrize("way_back", [way for way in WAYS_BACK if way is not held_by_a_gate])
async def test_new_ones_without_a_key_do_not_wait_for_many_that_came_back(
    store: Store, clock: ManualClock, way_back: WayBack
) -> None:
    """Unless those are much older: what a gate held for an hour goes before what came just now."""
    worker_id, big = await begin(store, "big", BIG)
    await way_back(store, clock, big)
    clock.move(SECOND)
    await takers(store, worker_id, 15)
    await store.insert(jobs_of(None, SMALL))
    assert Counter(await takers(store, worker_id, 110))["none"] == SMALL


@pytest.mark.parametrize("way_back", WAYS_BACK)
async def test_those_without_a_key_come_back_in_their_order(
    store: Store, clock: ManualClock, way_back: WayBack
) -> None:
    worker_id, claims = await begin(store, None, 20)
    await way_back(store, clock, claims)
    assert [claim.job_id for claim in await claim_some(store, worker_id)] == [claim.job_id for claim in claims]


async def test_the_delayed_take_turns_once_they_are_due(store: Store, clock: ManualClock) -> None:
    worker_id = await employ(store)
    instants = [number * INSTANT for number in range(BIG)]
    big = [replace(job, delay=MINUTE + later) for job, later in zip(jobs_of("big", BIG), instants, strict=True)]
    small = in_order(jobs_of("small", SMALL, delay=MINUTE + SECOND), first=BIG + 1)
    await store.insert([*big, *small, *jobs_of(None, 1, delay=MINUTE)])
    await store.insert([a_job(fair_key="single", tags=("single",), delay=MINUTE + 2 * SECOND)])
    await promote(store, clock)
    taken = await claim_some(store, worker_id, 30)
    shares = Counter(tag for claim in taken for tag in claim.tags)
    assert (shares["small"], shares["single"], shares["none"]) == (SMALL, 1, 1)
    taken += await claim_some(store, worker_id, 1_000)
    for jobs in (big, small):
        assert [claim.job_id for claim in taken if claim.tags == jobs[0].tags] == [job.id for job in jobs]


async def test_one_that_is_for_later_takes_no_turn_yet(store: Store) -> None:
    worker_id = await employ(store)
    await store.insert(jobs_of("big", 50))
    await store.insert([*jobs_of("small", 100, delay=HOUR), *jobs_of("small", 1)])
    assert "small" in await takers(store, worker_id, 4)


async def test_those_given_back_untouched_stand_about_where_they_stood(store: Store, clock: ManualClock) -> None:
    worker_id = await employ(store)
    await store.insert(jobs_of("big", BIG))
    await store.insert(jobs_of("small", BIG))
    claims = await claim_some(store, worker_id, 6)
    await store.insert(jobs_of(None, BIG, queue="other"))
    clock.move(HOUR)
    await apply(store, *map(transition.released, claims))
    again = {claim.job_id for claim in await claim_some(store, worker_id, 18)}
    assert {claim.job_id for claim in claims} <= again


async def test_a_batch_of_many_ways_back_is_placed_as_one(store: Store, clock: ManualClock) -> None:
    worker_id = await employ(store)
    await store.insert([*jobs_of("a", 2), *jobs_of("b", 2), *jobs_of(None, 2)])
    moves = [
        transition.released(claim) if number % 2 else transition.retrying(claim, Reason.FAILED, A_FAILURE, timedelta(0))
        for number, claim in enumerate(await claim_some(store, worker_id))
    ]
    await apply(store, *moves)
    assert Counter(await takers(store, worker_id, 10)) == {"a": 2, "b": 2, "none": 2}


@pytest.mark.parametrize("state", sorted(JobState))
async def test_the_key_of_a_job_is_seen_in_every_place(store: Store, state: JobState) -> None:
    with_key, without = await job_in(state, store, fair_key="tenant 7"), a_job()
    await store.insert([without])
    assert (await show(store, with_key)).fair_key == "tenant 7"
    assert (await show(store, without.id)).fair_key is None


@pytest.mark.parametrize("delay", [None, HOUR], ids=["ready", "parked"])
async def test_one_that_is_replaced_takes_turns_by_its_new_key(
    store: Store, clock: ManualClock, delay: timedelta | None
) -> None:
    worker_id = await employ(store)
    await store.insert(jobs_of("big", BIG))
    await store.insert(jobs_of(None, BIG, queue="other"))
    holder = await enqueue(store, fair_key="big", unique=a_key(), delay=delay)
    clock.move(MINUTE)
    newcomer = a_job(fair_key="small", unique=a_key(on_conflict=OnConflict.REPLACE), run_at=clock.now())
    [receipt] = await store.insert([newcomer])
    assert (receipt.job_id, receipt.intake) == (holder, Intake.REPLACED)
    assert (await show(store, holder)).fair_key == "small"
    assert holder in {claim.job_id for claim in await claim_some(store, worker_id, 3)}


@pytest.mark.parametrize("priority", [1, 5])
async def test_one_that_is_replaced_may_lose_its_key(store: Store, clock: ManualClock, priority: int) -> None:
    worker_id = await employ(store)
    holder = await enqueue(store, fair_key="big", unique=a_key())
    await store.insert([a_job(priority=priority, unique=a_key(on_conflict=OnConflict.REPLACE))])
    claim = await claim_one(store, worker_id)
    assert claim.job_id == holder
    await retried(store, clock, [claim])
    view = await show(store, holder)
    assert (view.state, view.fair_key, view.priority) == (JobState.READY, None, priority)


async def test_one_that_is_replaced_under_its_key_keeps_its_place(store: Store, clock: ManualClock) -> None:
    worker_id = await employ(store)
    holder = await enqueue(store, fair_key="big", unique=a_key())
    await store.insert(jobs_of("big", BIG))
    before = await show(store, holder)
    clock.move(HOUR)
    await store.insert([a_job(fair_key="big", args="{}", unique=a_key(on_conflict=OnConflict.REPLACE))])
    assert await show(store, holder) == replace(before, args="{}")
    assert (await claim_one(store, worker_id)).job_id == holder


async def test_a_replaced_one_of_another_priority_takes_turns_there(store: Store, clock: ManualClock) -> None:
    worker_id = await employ(store)
    await store.insert(jobs_of("big", BIG, priority=3))
    await store.insert(jobs_of(None, BIG, queue="other"))
    holder = await enqueue(store, fair_key="small", unique=a_key())
    clock.move(HOUR)
    await store.insert([a_job(fair_key="small", priority=3, unique=a_key(on_conflict=OnConflict.REPLACE))])
    assert holder in {claim.job_id for claim in await claim_some(store, worker_id, 3)}


@pytest.mark.parametrize("way_back", [retried, requeued, woken_at_once])
async def test_g10_one_stored_by_the_release_before_comes_back_without_a_key(
    store: Store, clock: ManualClock, engine_url: str, way_back: WayBack
) -> None:
    """That release writes the key only to the place in line."""
    worker_id = await employ(store)
    job_id = await enqueue(store, fair_key="a")
    query(engine_url, "UPDATE {job} SET fair_key = NULL")
    await way_back(store, clock, [await claim_one(store, worker_id)])
    assert [claim.job_id for claim in await claim_some(store, worker_id)] == [job_id]
    assert query(engine_url, "SELECT count(*) FROM {ready}") == [(0,)]


async def test_one_whose_unique_key_is_taken_waits_and_then_takes_its_turn(store: Store, clock: ManualClock) -> None:
    worker_id = await employ(store)
    ready_only = a_key(states={JobState.READY})
    late = await enqueue(store, fair_key="small", unique=ready_only, delay=MINUTE)
    holder = await enqueue(store, fair_key="big", unique=ready_only)
    await promote(store, clock)
    assert (await show(store, late)).reason == Reason.KEY_HELD
    assert (await claim_one(store, worker_id)).job_id == holder
    await store.insert(jobs_of("big", BIG))
    await promote(store, clock)
    assert late in {claim.job_id for claim in await claim_some(store, worker_id, 3)}
    assert (await show(store, late)).fair_key == "small"


async def test_a_lone_job_that_is_requeued_takes_its_turn(store: Store) -> None:
    worker_id, [claim] = await begin(store, "small", 1)
    await apply(store, transition.succeeded(claim, None, ()))
    await store.insert(jobs_of("big", BIG))
    await store.requeue(only(claim.job_id), By("ann"), 1)
    assert "small" in await takers(store, worker_id, 3)

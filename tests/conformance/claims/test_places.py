"""Places in line: what comes back through no fault of its own takes its old place, and a retry one by its due time."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta

import pytest
from msgspec.structs import replace
from tests.conformance.claims.test_fairness import jobs_of
from tests.conftest import OpenStore
from tests.support.builders.jobs import (
    A_FAILURE,
    HOUR,
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
from perdure.domain.flows.flow import Awaits, NewFamily
from perdure.domain.jobs import transition
from perdure.domain.jobs.ids import JobId, WorkerId
from perdure.domain.jobs.job import Claim
from perdure.domain.jobs.states import ACTIVE, JobState, Reason
from perdure.domain.operate.audit import By
from perdure.storage.port import Store
from perdure.storage.records import JobFilter

BACKLOG = 200
EVENT = "the outage is over"

WayBack = Callable[[Store, ManualClock, WorkerId, Sequence[Claim]], Awaitable[None]]


async def promote(store: Store, clock: ManualClock, span: timedelta = HOUR) -> None:
    clock.move(span)
    while any((await store.promote(100)).by_queue.values()):
        pass


async def released(store: Store, clock: ManualClock, worker_id: WorkerId, claims: Sequence[Claim]) -> None:
    await apply(store, *map(transition.released, reversed(claims)))


async def rescued(store: Store, clock: ManualClock, worker_id: WorkerId, claims: Sequence[Claim]) -> None:
    await store.retire(worker_id)
    orphans = await store.orphans(100)
    assert [orphan.claim.job_id for orphan in orphans] == sorted(claim.job_id for claim in claims)
    await apply(store, *(transition.crashed(orphan.claim, A_FAILURE) for orphan in orphans))


async def rescued_by_a_ramp(store: Store, clock: ManualClock, worker_id: WorkerId, claims: Sequence[Claim]) -> None:
    crashes = [transition.crashed(claim, A_FAILURE) for claim in claims]
    await apply(store, *(transition.returning(crash, MINUTE) for crash in crashes))
    await promote(store, clock)


async def held_by_a_gate(store: Store, clock: ManualClock, worker_id: WorkerId, claims: Sequence[Claim]) -> None:
    await apply(store, *(transition.paused(claim, Reason.RATE_LIMITED, MINUTE) for claim in claims))
    await promote(store, clock)


async def resumed(store: Store, clock: ManualClock, worker_id: WorkerId, claims: Sequence[Claim]) -> None:
    await apply(store, *(transition.paused(claim, Reason.ON_HOLD, None, "pause p1: a rest") for claim in claims))
    assert await store.resume(["p1"], By("ann")) == len(claims)


async def unknown(store: Store, clock: ManualClock, worker_id: WorkerId, claims: Sequence[Claim]) -> None:
    await apply(store, *(transition.paused(claim, Reason.UNKNOWN_KIND, MINUTE) for claim in claims))
    await promote(store, clock)


async def slept(store: Store, clock: ManualClock, worker_id: WorkerId, claims: Sequence[Claim]) -> None:
    await apply(store, *(transition.waiting(claim, Reason.SLEEPING, MINUTE) for claim in claims))
    await promote(store, clock)


async def woken(store: Store, clock: ManualClock, worker_id: WorkerId, claims: Sequence[Claim]) -> None:
    await apply(store, *(transition.parked(c, Reason.AWAITING_EVENT, None, Awaits(event=EVENT), None) for c in claims))
    assert (await store.emit(EVENT, None, By("ann"))).woken == len(claims)


async def woken_at_once(store: Store, clock: ManualClock, worker_id: WorkerId, claims: Sequence[Claim]) -> None:
    await store.emit(EVENT, None, By("ann"))
    await apply(store, *(transition.parked(c, Reason.AWAITING_EVENT, None, Awaits(event=EVENT), None) for c in claims))


async def run_now(store: Store, clock: ManualClock, worker_id: WorkerId, claims: Sequence[Claim]) -> None:
    await apply(store, *(transition.waiting(claim, Reason.SNOOZED, HOUR) for claim in claims))
    ids = tuple(claim.job_id for claim in claims)
    assert len(await store.run_now(JobFilter(ids=ids), By("ann"), 100)) == len(claims)


async def called_by_their_children(
    store: Store, clock: ManualClock, worker_id: WorkerId, claims: Sequence[Claim]
) -> None:
    for claim in claims:
        assert await store.spawn(claim, NewFamily(key="f", children=(a_job(queue="children"),)))
    await apply(
        store,
        *(
            replace(transition.parked(claim, Reason.AWAITING_CHILDREN, None, Awaits(family="f"), None), is_parent=True)
            for claim in claims
        ),
    )
    children = await claim_some(store, worker_id, queue="children")
    await apply(store, *(transition.succeeded(child, None, ()) for child in children))


NO_FAULT = [
    *(released, rescued, rescued_by_a_ramp, held_by_a_gate, resumed, unknown, slept, woken, woken_at_once, run_now),
    called_by_their_children,
]


async def in_line(store: Store, number: int, first: int = 1, **changes: object) -> list[JobId]:
    """Jobs in the order in which they were handed in; their ids say the opposite."""
    jobs = [a_job(id=numbered_id(10_000 - n), **changes) for n in range(first, first + number)]
    await store.insert(jobs)
    return [job.id for job in jobs]


async def order(store: Store, limit: int = 1_000, queue: str = "default") -> list[JobId]:
    """The order in which jobs are handed out."""
    return [claim.job_id for claim in await claim_some(store, await employ(store), limit, queue)]


@pytest.mark.parametrize("way_back", NO_FAULT)
async def test_what_comes_back_through_no_fault_of_its_own_takes_its_old_place(
    store: Store, clock: ManualClock, way_back: WayBack
) -> None:
    jobs = await in_line(store, BACKLOG)
    worker_id = await employ(store)
    claims = await claim_some(store, worker_id, 4)
    clock.move(MINUTE)
    late = await in_line(store, 3, first=BACKLOG + 1)
    await way_back(store, clock, worker_id, claims)
    assert await order(store) == jobs + late


@pytest.mark.parametrize("way_back", NO_FAULT)
async def test_what_comes_back_is_found_at_once_although_claims_are_far_ahead(
    store: Store, clock: ManualClock, other_store: OpenStore, way_back: WayBack
) -> None:
    """By every worker, and while there is always another job to claim."""
    elsewhere = await other_store()
    jobs = await in_line(store, BACKLOG)
    worker_id = await employ(store)
    claims = await claim_some(store, worker_id, 4)
    busy = await employ(elsewhere)
    for _ in range(10):
        assert len(await claim_some(elsewhere, busy, 5)) == 5
    await way_back(elsewhere, clock, worker_id, claims)
    found = [claim.job_id for claim in await claim_some(elsewhere, busy, 3)]
    found += [claim.job_id for claim in await claim_some(elsewhere, busy, 3)]
    assert found == jobs[:4] + jobs[54:56]


@pytest.mark.parametrize("way_back", NO_FAULT)
async def test_one_with_a_fair_key_takes_its_old_place_too(store: Store, clock: ManualClock, way_back: WayBack) -> None:
    big, small = jobs_of("big", 50), jobs_of("small", 50)
    await store.insert(big)
    await store.insert(small)
    worker_id = await employ(store)
    claims = await claim_some(store, worker_id, 6)
    clock.move(MINUTE)
    await way_back(store, clock, worker_id, claims)
    assert await order(store, 6) == [claim.job_id for claim in claims]


async def test_a_place_is_one_within_a_priority(store: Store, clock: ManualClock) -> None:
    worker_id = await employ(store)
    [low] = await in_line(store, 1, priority=7)
    claims = await claim_some(store, worker_id)
    urgent = await in_line(store, 20, first=2, priority=3)
    others = await in_line(store, 3, first=30, priority=7)
    await claim_some(store, worker_id, 5)
    await released(store, clock, worker_id, claims)
    assert await order(store) == [*urgent[5:], low, *others]


async def test_a_job_comes_back_to_its_place_as_often_as_it_must(store: Store, clock: ManualClock) -> None:
    jobs = await in_line(store, 20)
    worker_id = await employ(store)
    for way_back in (released, held_by_a_gate, slept, woken, run_now, released):
        claims = await claim_some(store, worker_id, 2)
        assert [claim.job_id for claim in claims] == jobs[:2]
        await way_back(store, clock, worker_id, claims)
    assert await order(store) == jobs


async def fail(store: Store, claim: Claim, wait: timedelta) -> None:
    await apply(store, transition.retrying(claim, Reason.FAILED, A_FAILURE, wait))


async def test_b2_a_retry_goes_before_jobs_that_came_after_it_was_due(store: Store, clock: ManualClock) -> None:
    """And after those that came before. The promoter comes late."""
    worker_id = await employ(store)
    [first] = await in_line(store, 1)
    claim = await claim_one(store, worker_id)
    before = await in_line(store, 5, first=2)
    clock.move(SECOND)
    await fail(store, claim, MINUTE)
    await promote(store, clock, 30 * SECOND)
    meanwhile = await in_line(store, 5, first=10)
    await promote(store, clock, 20 * SECOND)
    clock.move(20 * SECOND)
    after = await in_line(store, 5, first=20)
    await promote(store, clock, HOUR)
    assert await order(store) == [*before, *meanwhile, first, *after]


async def test_b2_a_retry_passes_nothing_that_was_there_when_it_failed(store: Store, clock: ManualClock) -> None:
    """Even if nothing was promoted since."""
    [first] = await in_line(store, 1)
    claim = await claim_one(store, await employ(store))
    before = await in_line(store, 5, first=2)
    clock.move(SECOND)
    await fail(store, claim, MINUTE)
    clock.move(HOUR)
    after = await in_line(store, 5, first=20)
    await promote(store, clock, HOUR)
    assert await order(store) == [*before, first, *after]


async def test_b2_a_thousand_retries_promoted_late_come_in_the_order_of_their_due_times(
    store: Store, clock: ManualClock
) -> None:
    worker_id = await employ(store)
    jobs = await in_line(store, 1_000)
    claims = await claim_some(store, worker_id, 1_000)
    before = await in_line(store, 5, first=2_000)
    clock.move(SECOND)
    waits = {claim.job_id: (7 * number % 1_000 + 1) * SECOND for number, claim in enumerate(claims)}
    await apply(store, *(transition.retrying(c, Reason.TIMED_OUT, A_FAILURE, waits[c.job_id]) for c in claims))
    clock.move(2 * HOUR)
    after = await in_line(store, 5, first=3_000)
    await promote(store, clock, HOUR)
    assert await order(store, 2_000) == [*before, *sorted(jobs, key=waits.__getitem__), *after]


async def test_b2_retries_due_at_one_moment_lose_nothing(store: Store, clock: ManualClock) -> None:
    worker_id = await employ(store)
    jobs = await in_line(store, 300)
    claims = await claim_some(store, worker_id, 300)
    await apply(store, *(transition.retrying(c, Reason.FAILED, A_FAILURE, MINUTE) for c in claims))
    clock.move(2 * MINUTE)
    after = await in_line(store, 5, first=3_000)
    await promote(store, clock, MINUTE)
    found = await order(store)
    assert sorted(found[:300]) == sorted(jobs)
    assert found[300:] == after


async def test_b2_retries_with_a_priority_go_before_new_jobs_earliest_first(store: Store, clock: ManualClock) -> None:
    """Also before those that were in line already; with a wait, without one, and by hand."""
    worker_id = await employ(store)
    await in_line(store, 4)
    claims = await claim_some(store, worker_id, 4)
    before = await in_line(store, 5, first=10)
    for claim, wait in zip(claims, (timedelta(0), 3 * MINUTE, MINUTE, HOUR), strict=True):
        await apply(store, transition.retrying(claim, Reason.FAILED, A_FAILURE, wait, priority=2))
    assert [job.priority for job in [await show(store, claim.job_id) for claim in claims]] == [2, 2, 2, 2]
    await promote(store, clock, 10 * MINUTE)
    after = await in_line(store, 5, first=20)
    retries = [claims[number].job_id for number in (0, 2, 1)]
    assert await order(store) == [*retries, *before, *after]
    await store.run_now(JobFilter(ids=(claims[3].job_id,)), By("ann"), 1)
    again = await claim_one(store, worker_id)
    assert again.job_id == claims[3].job_id
    await fail(store, again, timedelta(0))  # a failure without a word on it leaves the priority
    assert (await claim_one(store, worker_id)).job_id == claims[3].job_id


async def test_b2_a_stale_failure_changes_no_priority(store: Store) -> None:
    worker_id = await employ(store)
    [job] = await in_line(store, 1)
    claim = await claim_one(store, worker_id)
    await apply(store, transition.released(claim))
    late = transition.retrying(claim, Reason.FAILED, A_FAILURE, MINUTE, priority=2)
    assert (await store.acknowledge([late])).stale == (claim,)
    assert (await show(store, job)).priority == 5


async def test_a_delayed_job_takes_the_place_of_its_time(store: Store, clock: ManualClock) -> None:
    before = await in_line(store, 5)
    delayed = await in_line(store, 5, first=10, delay=MINUTE)
    await promote(store, clock, 30 * SECOND)
    meanwhile = await in_line(store, 5, first=20)
    await promote(store, clock, 20 * SECOND)
    clock.move(HOUR)
    after = await in_line(store, 5, first=30)
    await promote(store, clock, HOUR)
    found = await order(store)
    assert found[:10] == [*before, *meanwhile]
    assert sorted(found[10:15]) == sorted(delayed)
    assert found[15:] == after


async def test_a_retry_without_a_wait_is_due_now(store: Store, clock: ManualClock) -> None:
    jobs = await in_line(store, 10)
    claim = await claim_one(store, await employ(store))
    clock.move(SECOND)
    await fail(store, claim, timedelta(0))
    clock.move(SECOND)
    later = await in_line(store, 3, first=20)
    assert await order(store) == [*jobs[1:], jobs[0], *later]


async def test_a_retry_keeps_its_new_place(store: Store, clock: ManualClock) -> None:
    jobs = await in_line(store, 3)
    worker_id = await employ(store)
    await fail(store, await claim_one(store, worker_id), MINUTE)
    clock.move(2 * MINUTE)
    after = await in_line(store, 5, first=20)
    await promote(store, clock, MINUTE)
    claims = await claim_some(store, worker_id, 4)
    assert [claim.job_id for claim in claims] == [*jobs[1:], jobs[0], after[0]]
    await slept(store, clock, worker_id, claims)
    assert await order(store) == [*jobs[1:], jobs[0], *after]


async def test_a_requeued_job_begins_at_the_end(store: Store, clock: ManualClock) -> None:
    jobs = await in_line(store, 10)
    worker_id = await employ(store)
    dead, done = await claim_some(store, worker_id, 2)
    await apply(store, transition.died(dead, Reason.EXHAUSTED, A_FAILURE), transition.succeeded(done, None, ()))
    clock.move(SECOND)
    await store.requeue(only(dead.job_id), By("ann"), 1)
    clock.move(SECOND)
    await store.requeue(only(done.job_id), By("ann"), 1)
    assert await order(store) == [*jobs[2:], dead.job_id, done.job_id]


async def test_run_now_undoes_the_delay(store: Store, clock: ManualClock) -> None:
    """A job that was put off stands where it would stand had it not been: when it failed, or was handed in."""
    failed = await enqueue(store)
    claim = await claim_one(store, await employ(store))
    before = await in_line(store, 5)
    clock.move(SECOND)
    delayed = await enqueue(store, delay=HOUR)
    clock.move(SECOND)
    between = await in_line(store, 5, first=10)
    clock.move(SECOND)
    await fail(store, claim, HOUR)
    clock.move(SECOND)
    after = await in_line(store, 5, first=20)
    clock.move(SECOND)
    assert len(await store.run_now(JobFilter(), By("ann"), 10)) == 2
    assert await order(store) == [*before, delayed, *between, failed, *after]


async def test_one_that_waited_for_its_key_takes_the_place_of_its_time(store: Store, clock: ManualClock) -> None:
    ready_only = a_key(states={JobState.READY})
    waiter = await enqueue(store, unique=ready_only, delay=MINUTE)
    holder = await enqueue(store, unique=ready_only, queue="other")
    before = await in_line(store, 3)
    await promote(store, clock, 30 * SECOND)
    clock.move(MINUTE)
    after = await in_line(store, 3, first=10)
    await promote(store, clock, SECOND)
    assert (await show(store, waiter)).reason == Reason.KEY_HELD
    assert await order(store, queue="other") == [holder]
    await promote(store, clock, MINUTE)
    assert await order(store) == [*before, waiter, *after]


async def test_one_whose_key_was_taken_while_it_ran_takes_its_old_place(store: Store, clock: ManualClock) -> None:
    worker_id = await employ(store)
    waiting = ACTIVE - {JobState.RUNNING}
    [first, *others] = await in_line(store, 1, unique=a_key(states=waiting)) + await in_line(store, 5, first=2)
    claim = await claim_one(store, worker_id)
    rival = await enqueue(store, unique=a_key(states=waiting), queue="other")
    await apply(store, transition.released(claim))
    assert (await show(store, first)).reason == Reason.KEY_HELD
    assert await order(store, queue="other") == [rival]
    await promote(store, clock, MINUTE)
    assert await order(store) == [first, *others]


async def test_what_ages_is_found_at_its_old_place(store: Store, clock: ManualClock) -> None:
    """The front of a priority is what came back to it, wherever claims have got to."""
    worker_id = await employ(store)
    await in_line(store, 3, priority=7)
    claims = await claim_some(store, worker_id, 1)
    since = clock.now()
    clock.move(MINUTE)
    await in_line(store, 50, first=10, priority=7)
    await claim_some(store, worker_id, 20)
    await released(store, clock, worker_id, claims)
    [front] = await store.fronts(["default"], 1)
    assert (front.priority, front.since) == (7, since)


@pytest.mark.parametrize("way_back", [released, slept, woken, run_now])
async def test_g10_one_held_by_the_release_before_comes_back_at_the_end(
    store: Store, clock: ManualClock, engine_url: str, way_back: WayBack
) -> None:
    """That release does not note the places of the jobs that it claims or parks."""
    if engine_url.startswith("sqlite"):
        pytest.skip("a job's record has its place in every release")
    jobs = await in_line(store, 10)
    worker_id = await employ(store)
    claims = await claim_some(store, worker_id, 1)
    query(engine_url, "UPDATE {lease} SET seq = NULL")
    await way_back(store, clock, worker_id, claims)
    assert sorted(await order(store)) == sorted(jobs)


@pytest.mark.parametrize("state", [JobState.SCHEDULED, JobState.RETRYING, JobState.WAITING, JobState.PAUSED])
async def test_g10_one_parked_by_the_release_before_comes_back(
    store: Store, clock: ManualClock, engine_url: str, state: JobState
) -> None:
    job_id = await job_in(state, store)
    columns = "turn = NULL" if engine_url.startswith("sqlite") else "seq = NULL, behind = NULL"
    query(engine_url, f"UPDATE {{parked}} SET {columns}")
    await promote(store, clock)
    assert await order(store) == [job_id]

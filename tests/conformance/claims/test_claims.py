"""ClaimStore.claim: who gets which job, in what order, and never twice."""

from __future__ import annotations

import asyncio

from msgspec.structs import replace
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
    show,
    start,
    state_of,
)

from perdure.clock import ManualClock
from perdure.domain.flows.flow import Awaits
from perdure.domain.jobs import transition
from perdure.domain.jobs.ids import WorkerId
from perdure.domain.jobs.states import JobState, Reason
from perdure.domain.operate.audit import By
from perdure.storage.port import Store
from perdure.storage.records import JobFilter, Wanted


async def test_a_claim_carries_the_job_as_it_was_handed_in(store: Store, clock: ManualClock) -> None:
    enqueued_at = clock.now()
    job = a_job(queue="mail", crash_limit=7, tags=("eu",), meta='{"t":1}', unique=a_key(dead_for=MINUTE))
    await store.insert([job])
    clock.move(MINUTE)
    claim = await claim_one(store, await employ(store), "mail")
    assert (claim.job_id, claim.kind, claim.queue, claim.args) == (job.id, "greet", "mail", job.args)
    assert (claim.tags, claim.meta, claim.crash_limit) == (("eu",), '{"t":1}', 7)
    assert (claim.failures, claim.crashes, claim.attempt) == (0, 0, 1)
    assert (claim.since, claim.claimed_at) == (enqueued_at, clock.now())
    assert claim.token > 0
    assert claim.unique is not None
    assert job.unique is not None
    assert (claim.unique.key, claim.unique.states) == (job.unique.key, job.unique.states)
    assert claim.unique.dead_for == MINUTE


async def test_a_claimed_job_is_running_and_says_where(store: Store, clock: ManualClock) -> None:
    job_id = await enqueue(store)
    clock.move(SECOND)
    await claim_one(store, await employ(store, name="anna"))
    view = await show(store, job_id)
    assert (view.state, view.reason, view.worker) == (JobState.RUNNING, Reason.CLAIMED, "anna")
    assert (view.started_at, view.finished_at, view.due_at) == (clock.now(), None, None)


async def test_nothing_ready_is_nothing_claimed(store: Store) -> None:
    worker_id = await employ(store)
    assert await claim_some(store, worker_id) == []
    assert await store.claim(worker_id, []) == []


async def test_a_claimed_job_is_not_claimed_again(store: Store) -> None:
    worker_id = await employ(store)
    await store.insert([a_job() for _ in range(3)])
    assert len(await claim_some(store, worker_id, 2)) == 2
    assert len(await claim_some(store, worker_id, 2)) == 1
    assert await claim_some(store, worker_id, 2) == []


async def test_lower_priority_numbers_go_first(store: Store, clock: ManualClock) -> None:
    for priority in (5, 9, 0, 3):
        await enqueue(store, id=numbered_id(100 - priority), priority=priority)
        clock.move(SECOND)
    claims = await claim_some(store, await employ(store))
    assert [claim.job_id for claim in claims] == [numbered_id(100 - priority) for priority in (0, 3, 5, 9)]


async def test_c12_oldest_first_in_any_order_of_ids(store: Store, clock: ManualClock) -> None:
    order = [numbered_id(number) for number in (7, 3, 9, 1, 5)]
    for job_id in order:
        await enqueue(store, id=job_id)
        clock.move(SECOND)
    worker_id = await employ(store)
    assert [(await claim_one(store, worker_id)).job_id for _ in order] == order


async def test_c12_oldest_first_within_a_batch_of_claims(store: Store, clock: ManualClock) -> None:
    order = [numbered_id(number) for number in (7, 3, 9, 1, 5)]
    for job_id in order:
        await enqueue(store, id=job_id)
        clock.move(SECOND)
    claims = await claim_some(store, await employ(store), 4)
    assert [claim.job_id for claim in claims] == order[:4]


async def test_c12_oldest_first_over_several_stores(store: Store, clock: ManualClock, other_store: OpenStore) -> None:
    """A worker that looked ahead still serves what others hand in with a better priority, or give back."""
    elsewhere = await other_store()
    worker_id = await employ(store)
    for number in range(5):
        await enqueue(elsewhere, id=numbered_id(number), priority=5)
        clock.move(SECOND)
    first = await claim_one(store, worker_id)
    await enqueue(elsewhere, id=numbered_id(50), priority=1)
    assert (await claim_one(store, worker_id)).job_id == numbered_id(50)
    await apply(elsewhere, transition.released(first))
    rest = {claim.job_id for claim in await claim_some(store, worker_id)}
    assert rest == {numbered_id(number) for number in range(5)}


async def test_wanted_is_a_limit_for_each_queue(store: Store) -> None:
    for queue, jobs in (("a", 5), ("b", 5), ("c", 1)):
        await store.insert([a_job(queue=queue) for _ in range(jobs)])
    wanted = [Wanted("a", 2), Wanted("b", 0), Wanted("c", 10), Wanted("nobody", 10)]
    claims = await store.claim(await employ(store), wanted)
    assert sorted(claim.queue for claim in claims) == ["a", "a", "c"]


async def test_queues_are_served_in_the_order_wanted(store: Store) -> None:
    await store.insert([a_job(queue="a", priority=0), a_job(queue="b", priority=9)])
    claims = await store.claim(await employ(store), [Wanted("b", 1), Wanted("a", 1)])
    assert [claim.queue for claim in claims] == ["b", "a"]


async def test_a_worker_serves_any_queue_it_asks_for(store: Store) -> None:
    await enqueue(store, queue="late addition")
    assert await claim_one(store, await employ(store, queues=("default",)), "late addition")


async def test_the_token_rises_with_every_claim(store: Store, clock: ManualClock) -> None:
    claim = await start(store)
    worker_id = await employ(store)
    tokens = [claim.token]
    for give_back in (
        transition.released(claim),
        transition.crashed(claim, A_FAILURE),
        transition.retrying(claim, Reason.FAILED, A_FAILURE, MINUTE),
        transition.waiting(claim, Reason.SNOOZED, MINUTE),
        transition.paused(claim, Reason.UNKNOWN_KIND, MINUTE),
    ):
        await apply(store, transition.Transition(claim, give_back.to, give_back.reason, 0, 0, give_back.wait))
        clock.move(HOUR)
        await store.promote(10)
        claim = await claim_one(store, worker_id)
        tokens.append(claim.token)
    assert tokens == sorted(set(tokens))


async def test_the_token_rises_over_a_requeue(store: Store) -> None:
    claim = await start(store)
    await apply(store, transition.died(claim, Reason.EXHAUSTED, A_FAILURE))
    await store.requeue(JobFilter(), By("ops"), 10)
    assert (await claim_one(store, await employ(store))).token > claim.token


async def test_only_ready_jobs_are_claimed(store: Store) -> None:
    for state in JobState:
        if state is not JobState.READY:
            await job_in(state, store)
    assert await claim_some(store, await employ(store)) == []


async def test_an_unknown_worker_gets_nothing(store: Store) -> None:
    job_id = await enqueue(store)
    assert await claim_some(store, WorkerId(987_654)) == []
    assert await state_of(store, job_id) is JobState.READY


async def test_a_retired_worker_gets_nothing(store: Store) -> None:
    worker_id = await employ(store)
    job_id = await enqueue(store)
    await store.retire(worker_id)
    assert await claim_some(store, worker_id) == []
    assert await state_of(store, job_id) is JobState.READY


async def test_a_worker_declared_dead_by_another_gets_nothing(
    store: Store, clock: ManualClock, other_store: OpenStore
) -> None:
    """It may have claimed a moment ago and not know yet."""
    worker_id = await employ(store)
    await enqueue(store)
    await claim_one(store, worker_id)
    await enqueue(store)
    clock.move(HOUR)
    assert [buried.id for buried in await (await other_store()).bury_silent(MINUTE)] == [worker_id]
    assert await claim_some(store, worker_id) == []


async def test_burial_and_claim_at_once_leave_no_job_behind(
    store: Store, clock: ManualClock, other_store: OpenStore
) -> None:
    """Whichever comes first, each job is then ready, or an orphan that a rescuer sees."""
    undertaker = await other_store()
    for _ in range(20):
        worker_id = await employ(store)
        await store.insert([a_job() for _ in range(5)])
        claims, _ = await asyncio.gather(claim_some(store, worker_id), undertaker.retire(worker_id))
        orphans = await store.orphans(100)
        assert {orphan.claim.job_id for orphan in orphans} == {claim.job_id for claim in claims}
        await apply(store, *(transition.succeeded(claim, None, ()) for claim in claims))
        rest = await claim_some(store, await employ(store))
        assert len(claims) + len(rest) == 5
        await apply(store, *(transition.succeeded(claim, None, ()) for claim in rest))


async def test_many_callers_of_one_store_never_share_a_job(store: Store) -> None:
    jobs = [a_job() for _ in range(200)]
    await store.insert(jobs)
    workers = [await employ(store) for _ in range(8)]
    batches = await asyncio.gather(*(claim_some(store, workers[n % 8], 10) for n in range(40)))
    taken = [claim.job_id for batch in batches for claim in batch]
    assert sorted(taken) == sorted(job.id for job in jobs)


async def test_claims_of_a_second_store_see_what_the_first_inserted(store: Store, other_store: OpenStore) -> None:
    job_id = await enqueue(store)
    elsewhere = await other_store()
    assert (await claim_one(elsewhere, await employ(elsewhere))).job_id == job_id


async def test_what_stands_under_a_workers_id_is_listed_and_can_be_had_as_claims(store: Store) -> None:
    first, second = await employ(store), await employ(store)
    await store.insert([a_job(unique=a_key(), tags=("a",), meta='{"x":1}'), a_job()])
    mine = await claim_some(store, first)
    await enqueue(store)
    other = await claim_one(store, second)
    assert sorted(await store.leases(first)) == sorted((claim.job_id, claim.token) for claim in mine)
    assert await store.leases(second) == [(other.job_id, other.token)]
    ids = [claim.job_id for claim in (*mine, other)]
    by_id = {claim.job_id: replace(claim, is_fresh=False) for claim in mine}
    assert {claim.job_id: claim for claim in await store.claims_held(first, ids)} == by_id
    await apply(store, *(transition.succeeded(claim, None, ()) for claim in mine))
    assert (await store.leases(first), await store.claims_held(first, ids)) == ([], [])


async def test_a_claim_knows_when_its_job_was_due(store: Store, clock: ManualClock) -> None:
    """From its enqueueing, its own time, its retry, or from when it was requeued; after a crash it is not known."""
    worker_id = await employ(store)
    fresh, failing, crashing, dying = [await enqueue(store) for _ in range(4)]
    late = await enqueue(store, delay=MINUTE)
    clock.move(5 * SECOND)
    claims = {claim.job_id: claim for claim in await claim_some(store, worker_id)}
    assert claims[fresh].waited == 5 * SECOND
    await apply(
        store,
        transition.retrying(claims[failing], Reason.FAILED, A_FAILURE, 55 * SECOND),
        transition.crashed(claims[crashing], A_FAILURE),
        transition.died(claims[dying], Reason.EXHAUSTED, A_FAILURE),
    )
    clock.move(58 * SECOND)
    assert await store.promote(100)
    await store.requeue(JobFilter(ids=(dying,)), By("ada"), 10)
    clock.move(2 * SECOND)
    again = {claim.job_id: claim.waited for claim in await claim_some(store, worker_id)}
    assert again == {late: 5 * SECOND, failing: 5 * SECOND, crashing: None, dying: 2 * SECOND}


async def test_a_job_that_was_woken_or_run_now_is_due_from_then_on(store: Store, clock: ManualClock) -> None:
    worker_id = await employ(store)
    later = await enqueue(store, delay=HOUR)
    waiting = await enqueue(store)
    claim = await claim_one(store, worker_id)
    await apply(store, transition.parked(claim, Reason.AWAITING_EVENT, HOUR, Awaits(event="paid"), None))
    clock.move(MINUTE)
    await store.run_now(JobFilter(ids=(later,)), By("ada"), 10)
    await store.emit("paid", None, By("ada"))
    clock.move(SECOND)
    assert {claim.job_id: claim.waited for claim in await claim_some(store, worker_id)} == {
        later: SECOND,
        waiting: SECOND,
    }

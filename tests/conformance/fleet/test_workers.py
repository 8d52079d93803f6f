"""WorkerStore: how workers enter, show that they live, and leave."""

from __future__ import annotations

import pytest
from tests.conftest import OpenStore
from tests.support.builders.jobs import (
    DAY,
    HOSTILE,
    HOUR,
    INSTANT,
    MINUTE,
    SECOND,
    a_job,
    a_worker,
    apply,
    claim_one,
    claim_some,
    employ,
    enqueue,
    start,
    state_of,
)

from perdure.clock import ManualClock
from perdure.domain.jobs import transition
from perdure.domain.jobs.ids import WorkerId
from perdure.domain.jobs.states import JobState
from perdure.domain.operate.audit import By
from perdure.domain.worker import ProcessIdentity
from perdure.storage.port import Store
from perdure.storage.records import CancelRequest, JobFilter, Keep


async def test_a_worker_is_listed_as_it_introduced_itself(store: Store, clock: ManualClock) -> None:
    worker = a_worker(queues=("mail", "default"), concurrency=64, version="1.2.3")
    worker_id = await store.register(worker)
    [view] = await store.workers()
    assert (view.id, view.name, view.process) == (worker_id, worker.name, worker.process)
    assert (view.queues, view.concurrency, view.version) == (("mail", "default"), 64, "1.2.3")
    assert (view.started_at, view.beat_at, view.dead_at, view.running) == (clock.now(), clock.now(), None, 0)


@pytest.mark.parametrize("text", HOSTILE)
async def test_hostile_text_of_a_worker_is_kept_as_it_is(store: Store, text: str) -> None:
    worker = a_worker(name=text, queues=(text, "b"), version=text, process=ProcessIdentity(text, 1, 2**62))
    await store.register(worker)
    [view] = await store.workers()
    assert (view.name, view.queues, view.version, view.process) == (text, worker.queues, text, worker.process)


async def test_the_same_worker_registered_twice_is_two(store: Store) -> None:
    """A name or a process says nothing about a lease: after a restart the old one must still be buried."""
    assert await store.register(a_worker()) != await store.register(a_worker())
    assert len(await store.workers()) == 2


async def test_ids_are_never_used_again(store: Store, clock: ManualClock) -> None:
    used = [await employ(store) for _ in range(3)]
    for worker_id in used:
        await store.retire(worker_id)
    clock.move(2 * DAY)
    await store.prune(Keep(), 1_000)
    assert await store.workers() == []
    assert await employ(store) not in used


async def test_a_beat_renews_the_lease(store: Store, clock: ManualClock) -> None:
    worker_id = await employ(store)
    clock.move(20 * SECOND)
    assert await store.beat(worker_id)
    [view] = await store.workers()
    assert view.beat_at == clock.now()
    clock.move(20 * SECOND)
    assert await store.bury_silent(30 * SECOND) == []
    clock.move(10 * SECOND + INSTANT)
    assert [buried.id for buried in await store.bury_silent(30 * SECOND)] == [worker_id]


async def test_a_buried_worker_learns_it_at_its_next_beat_and_stays_dead(store: Store, clock: ManualClock) -> None:
    worker_id = await employ(store)
    clock.move(HOUR)
    await store.bury_silent(MINUTE)
    assert not await store.beat(worker_id)
    assert not await store.beat(worker_id)
    [view] = await store.workers()
    assert view.dead_at == clock.now()
    assert view.beat_at == clock.now() - HOUR


async def test_an_unknown_worker_is_reported_so(store: Store) -> None:
    assert not await store.beat(WorkerId(987_654))
    assert await store.cancel_requests(WorkerId(987_654)) == []
    await store.retire(WorkerId(987_654))


async def test_a_retired_worker_is_dead_and_what_it_holds_is_free(store: Store, clock: ManualClock) -> None:
    worker_id = await employ(store)
    job_id = await enqueue(store)
    await claim_one(store, worker_id)
    await store.retire(worker_id)
    assert not await store.beat(worker_id)
    [view] = await store.workers()
    assert (view.dead_at, view.running) == (clock.now(), 1)
    [orphan] = await store.orphans(10)
    assert (orphan.claim.job_id, orphan.worker_id) == (job_id, worker_id)


async def test_retiring_twice_keeps_the_first_death(store: Store, clock: ManualClock) -> None:
    worker_id = await employ(store)
    died_at = clock.now()
    await store.retire(worker_id)
    clock.move(HOUR)
    await store.retire(worker_id)
    [view] = await store.workers()
    assert view.dead_at == died_at


async def test_the_living_are_listed_first(store: Store, clock: ManualClock) -> None:
    ids = []
    for _ in range(6):
        ids.append(await employ(store))
        clock.move(SECOND)
    for worker_id in ids[::2]:
        await store.retire(worker_id)
    listed = await store.workers()
    assert {view.id for view in listed[:3]} == set(ids[1::2])
    assert all(view.dead_at is None for view in listed[:3])
    assert all(view.dead_at is not None for view in listed[3:])
    assert len(listed) == 6


async def test_running_counts_what_a_worker_holds_now(store: Store) -> None:
    busy, idle = await employ(store), await employ(store)
    await store.insert([a_job() for _ in range(4)])
    claims = await claim_some(store, busy, 3)
    running = {view.id: view.running for view in await store.workers()}
    assert running == {busy: 3, idle: 0}
    await apply(store, transition.succeeded(claims[0], None, ()), transition.released(claims[1]))
    running = {view.id: view.running for view in await store.workers()}
    assert running == {busy: 1, idle: 0}


async def test_cancel_requests_reach_the_worker_that_holds_the_job(store: Store, other_store: OpenStore) -> None:
    mine, theirs = await employ(store), await employ(store)
    job_id = await enqueue(store)
    claim = await claim_one(store, mine)
    await enqueue(store)
    await claim_one(store, theirs)
    assert await store.cancel_requests(mine) == []
    await (await other_store()).cancel(JobFilter(ids=(job_id,)), By("ops", "wrong address"), 10)
    assert await store.cancel_requests(mine) == [CancelRequest(job_id, claim.token, "wrong address")]
    assert await store.cancel_requests(theirs) == []


async def test_a_cancel_request_stands_until_the_job_has_moved(store: Store) -> None:
    worker_id = await employ(store)
    job_id = await enqueue(store)
    claim = await claim_one(store, worker_id)
    for _ in range(2):
        await store.cancel(JobFilter(ids=(job_id,)), By("ops"), 10)
        assert await store.cancel_requests(worker_id) == [CancelRequest(job_id, claim.token, None)]
    await apply(store, transition.cancelled(claim, None))
    assert await store.cancel_requests(worker_id) == []
    assert await state_of(store, job_id) is JobState.CANCELLED


async def test_a_job_may_finish_before_the_request_reaches_it(store: Store) -> None:
    claim = await start(store)
    await store.cancel(JobFilter(), By("ops"), 10)
    await apply(store, transition.succeeded(claim, "1", ()))
    assert await state_of(store, claim.job_id) is JobState.SUCCEEDED

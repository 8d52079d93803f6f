"""UpkeepStore, the rescuer's part: who is dead, and what they held (G4)."""

from __future__ import annotations

import asyncio
from datetime import timedelta

from msgspec.structs import replace
from tests.conftest import OpenStore
from tests.support.builders.jobs import (
    A_FAILURE,
    DAY,
    HOUR,
    INSTANT,
    SECOND,
    a_job,
    apply,
    claim_one,
    claim_some,
    employ,
    enqueue,
    numbered_id,
    show,
    start,
)

from perdure.clock import ManualClock
from perdure.domain.jobs import transition
from perdure.domain.jobs.job import Claim
from perdure.domain.jobs.states import JobState, Reason
from perdure.domain.worker import ProcessIdentity
from perdure.storage.port import Store
from perdure.storage.records import Acknowledged, Keep

LEASE = timedelta(seconds=30)


def nobody_lives(process: ProcessIdentity) -> bool:
    return False


async def test_silence_longer_than_the_lease_is_death(store: Store, clock: ManualClock) -> None:
    silent = await employ(store, name="silent")
    clock.move(INSTANT)
    await employ(store, name="younger")
    clock.move(LEASE - INSTANT)
    assert await store.bury_silent(LEASE) == []
    clock.move(INSTANT)
    [buried] = await store.bury_silent(LEASE)
    assert (buried.id, buried.name, buried.dead_at) == (silent, "silent", clock.now())
    assert await store.bury_silent(LEASE) == []


async def test_the_retired_are_not_buried_again(store: Store, clock: ManualClock) -> None:
    await store.retire(await employ(store))
    clock.move(HOUR)
    assert await store.bury_silent(LEASE) == []
    assert await store.bury_gone("host-1:boot-1", nobody_lives) == []


async def test_workers_declared_dead_are_returned_with_what_they_held(store: Store, clock: ManualClock) -> None:
    await store.insert([a_job() for _ in range(3)])
    await claim_some(store, await employ(store))
    clock.move(HOUR)
    [buried] = await store.bury_silent(LEASE)
    assert buried.running == 3


async def test_a_jobs_age_is_no_death(store: Store, clock: ManualClock) -> None:
    """A job may run for days while its worker beats."""
    worker_id = await employ(store)
    await enqueue(store)
    await claim_one(store, worker_id)
    clock.move(3 * DAY)
    assert await store.beat(worker_id)
    assert await store.bury_silent(LEASE) == []
    assert await store.orphans(10) == []


async def test_only_processes_of_this_host_are_asked_after(store: Store) -> None:
    here = [ProcessIdentity("here", pid, 1) for pid in (1, 2, 3)]
    ids = [await employ(store, process=process) for process in here]
    await employ(store, process=ProcessIdentity("there", 2, 1))
    await store.retire(ids[2])
    asked = []

    def is_alive(process: ProcessIdentity) -> bool:
        asked.append(process)
        return process.pid != 2

    [buried] = await store.bury_gone("here", is_alive)
    assert buried.id == ids[1]
    assert sorted(process.pid for process in asked) == [1, 2]
    assert {process.host for process in asked} == {"here"}
    assert not await store.beat(ids[1])
    assert await store.beat(ids[0])
    assert await store.bury_gone("here", is_alive) == []


async def test_a_pid_used_again_is_another_process(store: Store) -> None:
    first, second = ProcessIdentity("here", 7, 100), ProcessIdentity("here", 7, 200)
    old, new = await employ(store, process=first), await employ(store, process=second)
    assert [view.id for view in await store.bury_gone("here", lambda process: process == second)] == [old]
    assert await store.beat(new)


async def test_many_rescuers_bury_each_worker_once(store: Store, clock: ManualClock, other_store: OpenStore) -> None:
    for _ in range(10):
        await employ(store)
    clock.move(HOUR)
    stores = [store, await other_store()]
    buried = await asyncio.gather(
        *(one.bury_silent(LEASE) for one in stores * 2),
        *(one.bury_gone("host-1:boot-1", nobody_lives) for one in stores),
    )
    assert sorted(view.id for views in buried for view in views) == sorted(view.id for view in await store.workers())


async def test_the_dead_are_those_who_retired_or_were_buried(store: Store, clock: ManualClock) -> None:
    assert await store.dead_workers() == frozenset()
    silent, retired = await employ(store), await employ(store)
    clock.move(HOUR)
    await employ(store)
    await store.retire(retired)
    assert await store.dead_workers() == {retired}
    await store.bury_silent(LEASE)
    assert await store.dead_workers() == {retired, silent}


async def test_the_living_have_no_orphans(store: Store) -> None:
    await start(store)
    await enqueue(store)
    assert await store.orphans(10) == []


async def test_an_orphan_is_the_claim_as_it_was_given(store: Store, clock: ManualClock) -> None:
    worker_id = await employ(store, name="anna")
    await enqueue(store, tags=("eu",), meta='{"a":1}', crash_limit=9)
    claim = await claim_one(store, worker_id)
    clock.move(HOUR)
    await store.bury_silent(LEASE)
    clock.move(SECOND)
    [orphan] = await store.orphans(10)
    assert orphan.claim == replace(claim, is_fresh=False)
    assert (orphan.worker_id, orphan.worker) == (worker_id, "anna")
    assert orphan.silent_for == HOUR + SECOND


async def test_a_rescued_job_runs_again_and_the_first_worker_is_refused(store: Store) -> None:
    worker_id = await employ(store)
    await enqueue(store)
    claim = await claim_one(store, worker_id)
    await store.retire(worker_id)
    [orphan] = await store.orphans(10)
    await apply(store, transition.crashed(orphan.claim, A_FAILURE))
    assert await store.orphans(10) == []
    again = await claim_one(store, await employ(store))
    assert (again.crashes, again.failures, again.attempt) == (1, 0, 2)
    assert await store.acknowledge([transition.succeeded(claim, None, ())]) == Acknowledged(0, (claim,))
    assert (await show(store, claim.job_id)).state is JobState.RUNNING


async def test_orphans_come_page_by_page_in_the_order_of_their_ids(store: Store) -> None:
    """A page full of jobs that cannot be rescued does not hide the rest."""
    ids = [numbered_id(number) for number in range(10)]
    await store.insert([a_job(id=job_id) for job_id in reversed(ids)])
    first, second, living = await employ(store), await employ(store), await employ(store)
    held = {claim.job_id for claim in await claim_some(store, first, 4) + await claim_some(store, second, 4)}
    await claim_some(store, living, 10)
    await store.retire(first)
    await store.retire(second)
    seen: list[Claim] = []
    while page := await store.orphans(3, after=seen[-1].job_id if seen else None):
        assert len(page) <= 3
        seen += [orphan.claim for orphan in page]
    assert [claim.job_id for claim in seen] == sorted(held)


async def test_the_page_mark_need_not_be_an_orphan(store: Store) -> None:
    worker_id = await employ(store)
    for number in (2, 4):
        await enqueue(store, id=numbered_id(number))
    await claim_some(store, worker_id)
    await store.retire(worker_id)
    assert [orphan.claim.job_id for orphan in await store.orphans(9, numbered_id(3))] == [numbered_id(4)]
    assert await store.orphans(9, numbered_id(4)) == []


async def test_an_orphan_outlives_the_memory_of_its_worker(store: Store, clock: ManualClock) -> None:
    """Workers dead for a day are forgotten; what they held is rescued all the same."""
    worker_id = await employ(store)
    await enqueue(store)
    claim = await claim_one(store, worker_id)
    await store.retire(worker_id)
    clock.move(30 * DAY)
    await store.prune(Keep(), 1_000)
    [orphan] = await store.orphans(10)
    assert (orphan.claim, orphan.worker_id) == (replace(claim, is_fresh=False), worker_id)
    await apply(store, transition.crashed(orphan.claim, A_FAILURE))
    [attempt] = await store.attempts(claim.job_id)
    assert attempt.reason == Reason.CRASHED


async def test_acknowledge_racing_with_rescue_has_one_winner(store: Store, other_store: OpenStore) -> None:
    """Whoever is first, the other is stale, and the job tells the winner's story."""
    rescuer = await other_store()
    winners = set()
    for round_ in range(20):
        worker_id = await employ(store)
        await store.insert([a_job(queue=f"q{round_}") for _ in range(5)])
        claims = await claim_some(store, worker_id, queue=f"q{round_}")
        await store.retire(worker_id)
        done = [transition.succeeded(claim, None, ()) for claim in claims]
        rescued = [transition.crashed(orphan.claim, A_FAILURE) for orphan in await rescuer.orphans(10)]
        by_worker, by_rescuer = await asyncio.gather(store.acknowledge(done), rescuer.acknowledge(rescued))
        assert by_worker.applied + by_rescuer.applied == 5
        assert len(by_worker.stale) + len(by_rescuer.stale) == 5
        lost_by_worker = {claim.job_id for claim in by_worker.stale}
        for claim in claims:
            expected = JobState.READY if claim.job_id in lost_by_worker else JobState.SUCCEEDED
            assert (await show(store, claim.job_id)).state is expected
            winners.add(expected)
    assert winners

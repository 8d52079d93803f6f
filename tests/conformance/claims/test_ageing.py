"""What ageing asks of a store: what comes next in each priority, and jobs of one priority alone."""

from __future__ import annotations

from tests.support.builders.jobs import MINUTE, SECOND, a_job, employ, enqueue

from perdure.clock import ManualClock
from perdure.domain.jobs.ids import WorkerId
from perdure.storage.port import Store
from perdure.storage.records import Front, Wanted


async def test_fronts_show_what_comes_next_in_each_priority(store: Store, clock: ManualClock) -> None:
    began = clock.now()
    for queue, priority in (("a", 5), ("a", 5), ("a", 0), ("b", 9), ("a", 5), ("c", 1)):
        await enqueue(store, queue=queue, priority=priority)
        clock.move(SECOND)
    assert await store.fronts(["a", "b", "empty"], 2) == [
        Front("a", 0, began + 2 * SECOND),
        Front("a", 5, began),
        Front("a", 5, began + SECOND),
        Front("b", 9, began + 3 * SECOND),
    ]


async def test_fronts_follow_what_is_taken(store: Store, clock: ManualClock) -> None:
    worker_id = await employ(store)
    await store.insert([a_job(priority=3) for _ in range(3)])
    clock.move(MINUTE)
    await enqueue(store, priority=3)
    assert len(await store.claim(worker_id, [Wanted("default", 3)])) == 3
    assert await store.fronts(["default"], 10) == [Front("default", 3, clock.now())]


async def test_what_is_wanted_of_a_level_comes_from_it_alone(store: Store) -> None:
    worker_id = await employ(store)
    jobs = {priority: [a_job(priority=priority) for _ in range(3)] for priority in (0, 7, 9)}
    for group in jobs.values():
        await store.insert(group)
    assert await taken(store, worker_id, Wanted("default", 2, 7)) == [job.id for job in jobs[7][:2]]
    assert await taken(store, worker_id, Wanted("default", 5, 7)) == [jobs[7][2].id]
    assert await taken(store, worker_id, Wanted("default", 5, 8)) == []
    assert await taken(store, worker_id, Wanted("default", 9)) == [job.id for job in (*jobs[0], *jobs[9])]


async def test_what_is_wanted_of_a_level_comes_first(store: Store) -> None:
    worker_id = await employ(store)
    urgent, low = [a_job(priority=0) for _ in range(4)], [a_job(priority=9) for _ in range(4)]
    await store.insert(urgent + low)
    wanted = (Wanted("default", 2), Wanted("default", 1, 9))
    assert await taken(store, worker_id, *wanted) == [low[0].id, urgent[0].id, urgent[1].id]


async def test_jobs_taken_of_a_level_are_never_handed_out_again(store: Store) -> None:
    worker_id = await employ(store)
    jobs = [a_job(priority=number % 3) for number in range(30)]
    await store.insert(jobs)
    found = []
    for level in (2, None, 1, 2, None, None):
        found += await taken(store, worker_id, Wanted("default", 7, level))
    assert sorted(found) == sorted(job.id for job in jobs)


async def taken(store: Store, worker_id: WorkerId, *wanted: Wanted) -> list[str]:
    return [claim.job_id for claim in await store.claim(worker_id, wanted)]

"""The pruner deletes what was kept long enough, says so, and comes back soon while there is a backlog."""

from __future__ import annotations

from datetime import timedelta

from tests.support.builders.jobs import DAY, MINUTE, apply, enqueue, start, state_of

from perdure.clock import ManualClock
from perdure.domain.jobs import transition
from perdure.domain.jobs.states import JobState
from perdure.events import Emitter, Event, JobsPruned
from perdure.storage.port import Store
from perdure.storage.records import JobFilter, Keep, Page
from perdure.upkeep.pruner import Pruner


async def test_it_deletes_what_was_kept_long_enough_and_says_so(store: Store, clock: ManualClock) -> None:
    events: list[Event] = []
    emitter = Emitter()
    emitter.subscribe(events.append)
    pruner = Pruner(store, emitter, Keep(succeeded=DAY))
    await apply(store, transition.succeeded(await start(store), None, ()))
    waiting = await enqueue(store)
    await pruner.tick()
    assert (len(await store.jobs(JobFilter(), Page(10))), events) == (2, [])
    clock.move(2 * DAY)
    await pruner.tick()
    assert [job.id for job in await store.jobs(JobFilter(), Page(10))] == [waiting]
    assert await state_of(store, waiting) is JobState.READY
    await pruner.tick()
    assert events == [JobsPruned(1)], "nothing more to do, nothing more to say"


async def test_it_comes_back_soon_while_there_is_a_backlog(store: Store) -> None:
    pruner = Pruner(store, Emitter(), Keep())
    assert [pruner.next_wait(did) for did in (0, 999, 1_000)] == [MINUTE, MINUTE, timedelta(milliseconds=50)]

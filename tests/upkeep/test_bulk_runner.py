"""The bulk runner takes up commands that were started elsewhere, and goes on with those whose runner is gone."""

from __future__ import annotations

from tests.support.builders.jobs import MINUTE, SECOND, a_job, enqueue

from perdure.clock import ManualClock
from perdure.domain.jobs.states import JobState
from perdure.events import Emitter
from perdure.operate.bulk.batches import BulkBatches
from perdure.operate.desk import Desk
from perdure.storage.port import Store
from perdure.storage.records import JobFilter
from perdure.upkeep.bulk_runner import BulkRunner


async def test_it_does_what_was_started_and_then_waits(store: Store) -> None:
    job_id = await enqueue(store, delay=MINUTE)
    desk, runner = Desk(store, "ada"), BulkRunner(store, Emitter(), "w1")
    assert runner.next_wait(await runner.tick()) == 2 * SECOND
    bulk = await desk.start_bulk(await desk.plan("cancel", JobFilter()), why="not needed")
    assert runner.next_wait(await runner.tick()) < SECOND
    assert (await desk.bulk(bulk.id)).state == "done"
    assert (await desk.job(job_id)).job.state is JobState.CANCELLED
    assert await runner.tick() == 0


async def test_it_keeps_a_long_command_over_several_ticks(store: Store) -> None:
    await store.insert([a_job(delay=MINUTE) for _ in range(4_100)])
    desk, runner, other = Desk(store, "ada"), BulkRunner(store, Emitter(), "w1"), BulkRunner(store, Emitter(), "w2")
    bulk = await desk.start_bulk(await desk.plan("mark", JobFilter(), mark="seen"))
    assert await runner.tick() == 20
    assert await other.tick() == 0, "the first one has the lease"
    assert await runner.tick() == 1
    assert ((await desk.bulk(bulk.id)).state, (await desk.bulk(bulk.id)).done) == ("done", 4_100)


async def test_it_goes_on_where_a_runner_has_died(store: Store, clock: ManualClock) -> None:
    await store.insert([a_job(delay=MINUTE) for _ in range(5)])
    desk, runner = Desk(store, "ada"), BulkRunner(store, Emitter(), "w1")
    bulk = await desk.start_bulk(await desk.plan("mark", JobFilter(), mark="seen"))
    dead = BulkBatches(store, "dead", size=2)
    hold = await dead.take()
    assert hold is not None
    await dead.do_next(hold)
    assert await runner.tick() == 0
    clock.move(MINUTE)
    assert await runner.tick() == 1
    assert ((await desk.bulk(bulk.id)).state, (await desk.bulk(bulk.id)).done) == ("done", 5)

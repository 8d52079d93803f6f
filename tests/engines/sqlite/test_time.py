"""Schedules and leaders in a file: reads take no write lock, with either library."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta

import apsw
import pytest
from tests.support.builders.jobs import HOUR, MINUTE, claim_one, employ, enqueue, show
from tests.support.builders.schedules import fire_next, make, stands, step

from perdure.clock import ManualClock, SystemClock
from perdure.domain.schedule import Fate, Overlap
from perdure.engines.sqlite.database.drivers import DRIVERS
from perdure.engines.sqlite.store import SqliteStore

LEASE = timedelta(seconds=30)


async def test_an_idle_house_takes_no_write_lock(sqlite: SqliteStore, clock: ManualClock, path: str) -> None:
    """A scheduler with nothing due, a follower, and a worker without a quiet request only read."""
    await make(sqlite, clock.now() + MINUTE)
    worker_id = await employ(sqlite)
    await sqlite.lead("reports", "a", LEASE)
    writer = apsw.Connection(path)
    writer.execute("BEGIN IMMEDIATE")
    try:
        async with asyncio.timeout(5):
            assert (await sqlite.due_schedules(10, ())).due == ()
            assert not (await sqlite.lead("reports", "b", LEASE)).is_ours
            assert not await sqlite.wants_quiet(worker_id)
            assert await sqlite.last_return("default") is None
            assert await sqlite.fire([]) == []
    finally:
        writer.close()


@pytest.mark.parametrize("driver", DRIVERS)
async def test_time_through_either_library(path: str, clock: ManualClock, driver: str) -> None:
    store = SqliteStore(path, driver=driver, clock=clock)
    await store.open()
    try:
        await store.migrate()
        start = clock.now() - HOUR
        views = [await make(store, start, name=overlap, overlap=overlap) for overlap in Overlap]
        fires = await store.fire([step(view, times=2) for view in views])
        assert [(fire.schedule, fire.fate) for fire in fires if fire.fate is not Fate.FIRED] == [
            (Overlap.SKIP, Fate.OVERLAPPED)
        ]
        assert await store.fire([step(view) for view in views]) == []
        assert (await fire_next(store, Overlap.ALLOW)).nominal_at == start + 2 * MINUTE
        claim = await claim_one(store, await employ(store))
        assert await store.checkpoint(claim, '{"page":7}')
        assert (await store.lead("reports", "a", LEASE)).term == 1
        clock.move(LEASE)
        assert (await store.lead("reports", "b", LEASE)).term == 2
        assert (await stands(store, Overlap.SKIP)).last_job_id == fires[0].job_id
    finally:
        await store.close()


async def test_a_clock_made_of_the_systems_is_asked_too(path: str) -> None:
    """Its own word counts, not the short way to the system's time."""

    class Tomorrow(SystemClock):
        def now(self) -> datetime:
            return super().now() + timedelta(days=1)

    clock = Tomorrow()
    store = SqliteStore(path, clock=clock)
    await store.open()
    try:
        await store.migrate()
        before = clock.now()
        view = await show(store, await enqueue(store))
        assert before <= view.created_at <= clock.now()
    finally:
        await store.close()

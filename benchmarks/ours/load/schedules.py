"""What ten thousand schedules cost: the time of one tick, and whether any nominal time drifts."""

from __future__ import annotations

import asyncio
import random
import statistics
import time
from datetime import UTC, datetime, timedelta

from benchmarks.harness.contestant import Engine
from benchmarks.harness.databases import new_database
from benchmarks.ours.addresses import address
from perdure.app.connect import store_for
from perdure.clock import ManualClock
from perdure.domain.schedule import Overlap, Schedule
from perdure.events import Emitter
from perdure.policy.schedules.timetable import timetable
from perdure.storage.schedules import Timed
from perdure.upkeep.scheduler import Scheduler

SCHEDULES = 10_000
TICKS = 120
_START = datetime(2026, 3, 1, tzinfo=UTC)


def tick_cost(engine: Engine, server: str) -> dict[str, float]:
    """The median and the slowest of a hundred ticks in milliseconds, and how many nominal times were off."""
    with new_database(engine, server) as database:
        return asyncio.run(_measure(address(engine, database)))


async def _measure(url: str) -> dict[str, float]:
    clock = ManualClock(_START)
    store = store_for(url, clock)
    await store.open()
    try:
        await store.migrate()
        declared = _declared()
        await store.declare_schedules(
            [Timed(one, timetable(one.expression, one.tz).next_after(_START)) for one in declared]
        )
        scheduler = Scheduler(store, Emitter(), clock, frozenset(one.name for one in declared), lambda: None)
        await scheduler.tick()
        times, fired, off = [], 0, 0
        for _ in range(TICKS):
            clock.move(timedelta(seconds=1))
            begun = time.perf_counter()
            did = await scheduler.tick()
            times.append((time.perf_counter() - begun) * 1_000)
            fired += len(did.fires)
            off += sum(fire.nominal_at != clock.now() for fire in did.fires)
        assert fired > TICKS, "hardly any schedule was due"
        return {"median": statistics.median(times), "slowest": max(times), "off": float(off)}
    finally:
        await store.close()


def _declared() -> list[Schedule]:
    """Schedules of every hour, spread evenly over its seconds, in a few zones."""
    chance = random.Random(1)  # noqa: S311 - the same ones in every run
    zones = ("UTC", "Europe/Berlin", "America/New_York", "Asia/Tokyo")
    return [
        Schedule(
            name=f"schedule-{number:05}",
            kind="noop",
            expression=f"{chance.randrange(60)} {chance.randrange(60)} * * * *",
            tz=zones[number % len(zones)],
            overlap=Overlap.ALLOW,
        )
        for number in range(SCHEDULES)
    ]

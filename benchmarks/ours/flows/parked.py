"""What waiting costs: jobs that have parked use no slot, wake when their time comes, and do not slow those who claim.

`python -m benchmarks.ours.flows.parked [--engine sqlite|postgres]` prints the figures of each engine.
"""

from __future__ import annotations

import argparse
import asyncio
import time
from datetime import datetime, timedelta

from benchmarks.harness.contestant import Engine
from benchmarks.harness.databases import new_database, settle
from benchmarks.ours.addresses import address
from benchmarks.ours.promises import claims_against
from perdure import App, Context, WorkerSettings
from perdure.clock import SystemClock

SLEEPERS = 1_000
PARKED = 100_000
NAP = timedelta(seconds=10)
SLOTS = 10
CLOCK = SystemClock()


class Dormitory:
    """An app whose jobs sleep, and how late each of them woke."""

    def __init__(self, app: App) -> None:
        self.late: list[float] = []
        self.through = asyncio.Event()

        async def sleeper(ctx: Context, index: int) -> None:
            del index
            asleep = await ctx.step("lie down", _now)
            await ctx.sleep(NAP)
            self.late.append((CLOCK.now() - asleep - NAP).total_seconds())

        async def passer_by() -> None:
            self.through.set()

        self.sleeper = app.job(sleeper)
        self.passer_by = app.job(passer_by)


async def _now() -> datetime:
    return CLOCK.now()


def waking(engine: Engine, server: str, *, sleepers: int = SLEEPERS) -> dict[str, float]:
    """The latest waking of sleepers in a worker of few slots, and how long a newcomer waits while they all sleep."""

    async def measure(url: str) -> dict[str, float]:
        async with App(url) as app:
            dormitory = Dormitory(app)
            await app.enqueue_many(dormitory.sleeper.call(index) for index in range(sleepers))
            worker = await app.worker(WorkerSettings(concurrency=SLOTS))
            running = asyncio.create_task(worker.run())
            while worker.acknowledged < sleepers:  # noqa: ASYNC110 - all have parked
                await asyncio.sleep(0.005)
            in_slots = worker.running
            begun = time.perf_counter()
            await dormitory.passer_by.enqueue()
            await dormitory.through.wait()
            newcomer = time.perf_counter() - begun
            while len(dormitory.late) < sleepers:  # noqa: ASYNC110
                await asyncio.sleep(0.005)
            worker.stop()
            await running
            return {"slots": in_slots, "newcomer": newcomer, "latest": max(dormitory.late)}

    with new_database(engine, server) as database:
        return asyncio.run(measure(address(engine, database)))


def claims_beside_parked(engine: Engine, server: str, *, parked: int = PARKED) -> float:
    """What a claim costs beside so many jobs that wait for an event, against one in an empty database."""
    with new_database(engine, server) as empty, new_database(engine, server) as full:
        asyncio.run(_park(address(engine, full), parked))
        settle(engine, full)
        return claims_against(engine, full, empty)


async def _park(url: str, jobs: int) -> None:
    async with App(url) as app:

        async def waiter(ctx: Context, index: int) -> None:
            await ctx.wait_for(f"never:{index}", timeout="30d")

        waits = app.job(queue="waiting")(waiter)
        await app.enqueue_many(waits.call(index) for index in range(jobs))
        worker = await app.worker(WorkerSettings(queues=["waiting"], concurrency=500))
        running = asyncio.create_task(worker.run())
        while worker.acknowledged < jobs:  # noqa: ASYNC110
            await asyncio.sleep(0.05)
        worker.stop()
        await running


def main() -> None:
    """Measure each engine once, and print."""
    from benchmarks.ours.__main__ import server_for  # noqa: PLC0415 - the whole harness, for one helper of it

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--engine", choices=["sqlite", "postgres"], action="append")
    options = parser.parse_args()
    for engine in (Engine.SQLITE, Engine.POSTGRES):
        if engine.name.lower() in (options.engine or ["sqlite", "postgres"]):
            with server_for(engine) as server:
                print(engine, waking(engine, server), f"claims {claims_beside_parked(engine, server):.2f} ×")


if __name__ == "__main__":
    main()

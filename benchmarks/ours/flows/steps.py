"""How many steps a worker keeps in a second: each is durable before its handler goes on.

`python -m benchmarks.ours.flows.steps [--engine sqlite|postgres] [--jobs N]` prints the figure of each engine.
"""

from __future__ import annotations

import argparse
import asyncio
import time

from benchmarks.harness.contestant import Engine
from benchmarks.harness.databases import new_database
from benchmarks.ours.addresses import address
from perdure import App, Context, WorkerSettings

STEPS = 10
JOBS = 2_000
CONCURRENCY = 500


async def _number(index: int) -> int:
    return index


async def _walk(ctx: Context, index: int) -> int:
    total = 0
    for step in range(STEPS):
        total += await ctx.step("number", _number, index + step)
    return total


def steps_per_second(engine: Engine, server: str, *, jobs: int = JOBS) -> float:
    """Steps per second of jobs of ten steps each, in one worker, from the first claim to the last acknowledgement."""

    async def measure(url: str) -> float:
        async with App(url) as app:
            walk = app.job(_walk)
            await app.enqueue_many(walk.call(index) for index in range(jobs))
            worker = await app.worker(WorkerSettings(concurrency=CONCURRENCY))
            begun = time.perf_counter()
            running = asyncio.create_task(worker.run())
            while worker.acknowledged < jobs:  # noqa: ASYNC110 - what is measured must not be told to
                await asyncio.sleep(0.005)
            rate = jobs * STEPS / (time.perf_counter() - begun)
            worker.stop()
            await running
            return rate

    with new_database(engine, server) as database:
        return asyncio.run(measure(address(engine, database)))


def main() -> None:
    """Measure each engine once, and print."""
    from benchmarks.ours.__main__ import server_for  # noqa: PLC0415 - the whole harness, for one helper of it

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--engine", choices=["sqlite", "postgres"], action="append")
    parser.add_argument("--jobs", type=int, default=JOBS)
    options = parser.parse_args()
    for engine in (Engine.SQLITE, Engine.POSTGRES):
        if engine.name.lower() in (options.engine or ["sqlite", "postgres"]):
            with server_for(engine) as server:
                print(f"{engine}: {steps_per_second(engine, server, jobs=options.jobs):,.0f} steps/s")


if __name__ == "__main__":
    main()

"""How long a worker takes to close when every handler listens."""

from __future__ import annotations

import asyncio
import time

from benchmarks.harness.contestant import Engine
from benchmarks.harness.databases import new_database
from benchmarks.ours.addresses import address
from perdure import App, Context, Release, WorkerSettings
from perdure.events import Event, WorkerClosed

JOBS = 1_000


def closing(engine: Engine, server: str, *, jobs: int = JOBS) -> float:
    """Seconds that a worker takes to close over so many handlers that leave at once when they are told.

    Half of them write a checkpoint first, and all of them give their jobs back.
    """

    async def measure(url: str) -> float:
        begun = 0

        async def listen(ctx: Context, index: int) -> None:
            nonlocal begun
            begun += 1
            await ctx.wait_closing()
            if index % 2:
                await ctx.checkpoint({"page": index})
            raise Release

        async with App(url) as app:
            job = app.job(listen)
            closed: list[WorkerClosed] = []

            def hear(event: Event) -> None:
                if isinstance(event, WorkerClosed):
                    closed.append(event)

            app.subscribe(hear)
            await app.enqueue_many(job.call(index) for index in range(jobs))
            worker = await app.worker(WorkerSettings(concurrency=jobs))
            running = asyncio.create_task(worker.run())
            while begun < jobs:  # noqa: ASYNC110 - what is measured must not be told to
                await asyncio.sleep(0.01)
            asked_at = time.perf_counter()
            worker.stop()
            await running
            took = time.perf_counter() - asked_at
            assert [event.released for event in closed] == [jobs]
            return took

    with new_database(engine, server) as database:
        return asyncio.run(measure(address(engine, database)))

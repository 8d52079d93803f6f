"""What a long chain costs: the time must grow with the number of its links, and not with the square of it."""

from __future__ import annotations

import asyncio
import time

from benchmarks.harness.contestant import Engine
from benchmarks.harness.databases import new_database
from benchmarks.ours.addresses import address
from perdure import App, Chain, Handle, Job, WorkerSettings

LINKS = 10_000
CONCURRENCY = 10


def chain_seconds(engine: Engine, server: str, *, links: int = LINKS) -> float:
    """Seconds from the start of a worker to the result of a chain of so many links."""

    async def measure(url: str) -> float:
        async with App(url) as app:

            async def count(result: int = 0) -> int:
                return result + 1

            link: Job[..., int] = app.job(count)
            handle: Handle[int] = await Chain(tuple(link.call() for _ in range(links))).enqueue()
            worker = await app.worker(WorkerSettings(concurrency=CONCURRENCY))
            begun = time.perf_counter()
            running = asyncio.create_task(worker.run())
            result = await handle.result()
            assert result == links
            took = time.perf_counter() - begun
            worker.stop()
            await running
            return took

    with new_database(engine, server) as database:
        return asyncio.run(measure(address(engine, database)))

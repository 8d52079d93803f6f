"""What a parent of many children costs beyond the children's own work."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

from benchmarks.harness.contestant import Engine
from benchmarks.harness.databases import new_database
from benchmarks.ours.addresses import address
from perdure import App, Context, Job, WorkerSettings

CHILDREN = 10_000
CONCURRENCY = 100


class Household:
    """An app with a parent and its children, and how far they are."""

    def __init__(self, app: App, children: int) -> None:
        self.app = app
        self.done = 0
        self.gathered = asyncio.Event()

        async def load(number: int) -> int:
            self.done += 1
            return number

        async def ingest(ctx: Context) -> int:
            total = sum(await ctx.gather(child.call(number) for number in range(children)))
            assert total == sum(range(children))
            self.gathered.set()
            return total

        child: Job[[int], int] = app.job(load)
        self.child = child
        self.parent: Job[[], int] = app.job(ingest)


def families(engine: Engine, server: str, *, children: int = CHILDREN) -> dict[str, float]:
    """Seconds from the start of a worker to the gathered results of so many children, and without a parent.

    `beyond` is what spawn and gather cost on top of the children's own work, enqueue excluded.
    """
    alone = _measured(engine, server, children, _alone)
    together = _measured(engine, server, children, _together)
    return {"alone": alone, "together": together, "beyond": together - alone}


async def _alone(household: Household, children: int) -> None:
    await household.app.enqueue_many(household.child.call(number) for number in range(children))


async def _together(household: Household, _: int) -> None:
    await household.parent.enqueue()


def _measured(engine: Engine, server: str, children: int, fill: Callable[[Household, int], Awaitable[None]]) -> float:
    async def measure(url: str) -> float:
        async with App(url) as app:
            household = Household(app, children)
            await fill(household, children)
            worker = await app.worker(WorkerSettings(concurrency=CONCURRENCY))
            begun = time.perf_counter()
            running = asyncio.create_task(worker.run())
            if fill is _together:
                await household.gathered.wait()
            else:
                while household.done < children:  # noqa: ASYNC110 - what is measured must not be told to
                    await asyncio.sleep(0.005)
            took = time.perf_counter() - begun
            worker.stop()
            await running
            return took

    with new_database(engine, server) as database:
        return asyncio.run(measure(address(engine, database)))

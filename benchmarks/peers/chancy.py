"""chancy on PostgreSQL: jobs as tasks on the worker's loop, eager polling.

Runs in its own environment; left out of type checking.
"""

from __future__ import annotations

import logging
from contextlib import asynccontextmanager
from importlib import import_module

from chancy import Chancy, Job, Queue, Worker
from chancy.plugins.leadership import Leadership
from chancy.plugins.pruner import Pruner
from chancy.plugins.recovery import Recovery

from benchmarks.harness.contest import run
from benchmarks.harness.contestant import Engine, Plan
from benchmarks.harness.databases import count_sql

CONCURRENCY = 1_000
BULK = 1_000
ACKNOWLEDGE_EVERY = 0.05
QUIET = logging.getLogger("chancy-quiet")
QUIET.setLevel(logging.WARNING)
LEDGER = None


async def noop(*, index: int, sent_ns: int) -> None:
    """Tell the ledger of this worker process."""
    LEDGER.start(index, sent_ns)


def plugins():
    """Keep what running jobs needs; leave out metrics and workflows."""
    return [Leadership(), Pruner(), Recovery()]


def new_job(index: int, sent_ns: int) -> Job:
    """Describe one job; its function is found again by its import path."""
    return Job(
        func="benchmarks.peers.chancy.noop",
        kwargs={"index": index, "sent_ns": sent_ns},
        queue="noop",
    )


class ChancyProducer:
    """Enqueue over chancy's pool."""

    def __init__(self, chancy: Chancy) -> None:
        self.chancy = chancy

    async def enqueue(self, index: int, sent_ns: int) -> None:
        await self.chancy.push(new_job(index, sent_ns))

    async def enqueue_many(self, count: int) -> None:
        jobs = [new_job(index, 0) for index in range(count)]
        async for _ in self.chancy.push_many(jobs, batch_size=BULK):
            pass


class ChancyContestant:
    """Drive chancy."""

    name = "chancy"
    distribution = "chancy"
    engine = Engine.POSTGRES
    plan = Plan(drain_jobs=40_000)
    settings = {
        "executor": "async",
        "loop": "uvloop",
        "concurrency": str(CONCURRENCY),
        "polling": "eager, notified",
        "updates every": f"{ACKNOWLEDGE_EVERY} s",
        "plugins": "leadership, pruner, recovery",
    }
    uvloop = True

    async def prepare(self, url: str) -> None:
        async with Chancy(url, log=QUIET, plugins=plugins(), no_default_plugins=True) as chancy:
            await chancy.migrate()
            queue = Queue("noop", concurrency=CONCURRENCY, executor=Chancy.Executor.Async, eager_polling=True)
            await chancy.declare(queue)

    @asynccontextmanager
    async def producer(self, url):
        async with Chancy(url, log=QUIET, plugins=plugins(), no_default_plugins=True) as chancy:
            yield ChancyProducer(chancy)

    async def unfinished(self, url: str) -> int:
        return count_sql(url, "SELECT count(*) FROM chancy_jobs WHERE state <> 'succeeded'")

    async def work(self, url, ledger, purpose) -> None:
        del purpose
        # chancy imports the handler's module by name; this one runs as __main__.
        import_module("benchmarks.peers.chancy").LEDGER = ledger
        async with Chancy(url, log=QUIET, plugins=plugins(), no_default_plugins=True) as chancy:
            ledger.wait_at_gate()
            worker = Worker(chancy)
            worker.send_outgoing_interval = ACKNOWLEDGE_EVERY
            async with worker:
                await worker.wait_for_shutdown()


if __name__ == "__main__":
    run(ChancyContestant(), "benchmarks.peers.chancy")

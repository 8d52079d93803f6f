"""flexiq on SQLite: a pool of threads, and a scheduler that claims as many jobs at once.

flexiq opens its file with synchronous=NORMAL and offers no other choice, so its commits are
less durable than those of the others. Runs in its own environment; left out of type checking.
"""

from __future__ import annotations

import logging
from contextlib import asynccontextmanager

from flexiq import Queue

from benchmarks.harness.contest import run
from benchmarks.harness.contestant import Engine, Plan

THREADS = 32
POLL_MS = 5
BULK = 1_000


def new_queue(path: str) -> Queue:
    """Open the queue in the file at `path`."""
    return Queue(
        db_path=path,
        workers=THREADS,
        scheduler_batch_size=THREADS,
        scheduler_poll_interval_ms=POLL_MS,
    )


class FlexiqProducer:
    """Enqueue through the native core."""

    def __init__(self, queue: Queue) -> None:
        self.queue = queue

    async def enqueue(self, index: int, sent_ns: int) -> None:
        self.queue.enqueue("noop", (index, sent_ns))

    async def enqueue_many(self, count: int) -> None:
        for begin in range(0, count, BULK):
            indices = range(begin, min(begin + BULK, count))
            self.queue.enqueue_many("noop", [(index, 0) for index in indices])


class Flexiq:
    """Drive flexiq."""

    name = "flexiq"
    distribution = "flexiq"
    engine = Engine.SQLITE
    plan = Plan(drain_jobs=6_000)
    settings = {
        "threads": str(THREADS),
        "scheduler batch": str(THREADS),
        "poll": f"{POLL_MS} ms",
        "synchronous": "NORMAL",
    }
    uvloop = False

    async def prepare(self, url: str) -> None:
        new_queue(url).close()

    @asynccontextmanager
    async def producer(self, url):
        queue = new_queue(url)
        try:
            yield FlexiqProducer(queue)
        finally:
            queue.close()

    async def unfinished(self, url: str) -> int:
        queue = new_queue(url)
        try:
            states = queue.stats()
        finally:
            queue.close()
        return states["pending"] + states["running"]

    async def work(self, url, ledger, purpose) -> None:
        del purpose
        logging.disable(logging.INFO)
        queue = new_queue(url)

        @queue.task(name="noop")
        def noop(index: int, sent_ns: int) -> None:
            ledger.start(index, sent_ns)

        ledger.wait_at_gate()
        queue.run_worker()


if __name__ == "__main__":
    run(Flexiq(), "benchmarks.peers.flexiq")

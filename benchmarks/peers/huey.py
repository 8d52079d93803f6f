"""huey on SQLite: one thread, no results, WAL with synchronous=FULL.

huey takes a job off its table before it runs, so that the last removal, together with the
last handler's start, is the nearest it has to an acknowledgement. It has no bulk enqueue.
Runs in its own environment; left out of type checking.
"""

from __future__ import annotations

from contextlib import asynccontextmanager

from huey import SqliteHuey

from benchmarks.harness.contest import run
from benchmarks.harness.contestant import Engine, Plan

POLL_SECONDS = 0.005


def new_huey(path: str, ledger=None):
    """Open the queue in the file at `path`, and define its one task."""
    huey = SqliteHuey(filename=path, results=False, journal_mode="wal", fsync=True)

    @huey.task(name="noop")
    def noop(index: int, sent_ns: int) -> None:
        ledger.start(index, sent_ns)

    return huey, noop


class HueyProducer:
    """Enqueue over huey's connection."""

    def __init__(self, noop) -> None:
        self.noop = noop

    async def enqueue(self, index: int, sent_ns: int) -> None:
        self.noop(index, sent_ns)

    async def enqueue_many(self, count: int) -> None:
        for index in range(count):
            self.noop(index, 0)


class Huey:
    """Drive huey."""

    name = "huey"
    distribution = "huey"
    engine = Engine.SQLITE
    plan = Plan(drain_jobs=20_000)
    settings = {
        "threads": "1",
        "results": "off",
        "synchronous": "FULL",
        "poll": f"{POLL_SECONDS * 1000:.0f} ms",
        "delivery": "at most once",
    }
    uvloop = False

    async def prepare(self, url: str) -> None:
        new_huey(url)[0].storage.close()

    @asynccontextmanager
    async def producer(self, url):
        huey, noop = new_huey(url)
        try:
            yield HueyProducer(noop)
        finally:
            huey.storage.close()

    async def unfinished(self, url: str) -> int:
        huey, _ = new_huey(url)
        try:
            return huey.pending_count()
        finally:
            huey.storage.close()

    async def work(self, url, ledger, purpose) -> None:
        del purpose
        huey, _ = new_huey(url, ledger)
        consumer = huey.create_consumer(
            workers=1,
            periodic=False,
            initial_delay=POLL_SECONDS,
            max_delay=POLL_SECONDS,
            backoff=1.0,
        )
        ledger.wait_at_gate()
        consumer.run()


if __name__ == "__main__":
    run(Huey(), "benchmarks.peers.huey")

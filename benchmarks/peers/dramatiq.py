"""dramatiq on Redis: one process, one thread, 128 jobs fetched ahead.

Runs in its own environment; left out of type checking.
"""

from __future__ import annotations

import asyncio
import os
from contextlib import asynccontextmanager

PREFETCH = 128
os.environ["dramatiq_queue_prefetch"] = str(PREFETCH)  # noqa: SIM112 - spelt so; read on import

import dramatiq  # noqa: E402 - after the variable it reads
from dramatiq.brokers.redis import RedisBroker  # noqa: E402
from redis import Redis  # noqa: E402

from benchmarks.harness.contest import run  # noqa: E402
from benchmarks.harness.contestant import Engine, Plan  # noqa: E402


def new_broker(url: str, ledger=None):
    """Connect to Redis, and define the one actor."""
    broker = RedisBroker(url=url)

    @dramatiq.actor(broker=broker, actor_name="noop")
    def noop(index: int, sent_ns: int) -> None:
        ledger.start(index, sent_ns)

    return broker, noop


class DramatiqProducer:
    """Enqueue over dramatiq's broker."""

    def __init__(self, noop) -> None:
        self.noop = noop

    async def enqueue(self, index: int, sent_ns: int) -> None:
        self.noop.send(index, sent_ns)

    async def enqueue_many(self, count: int) -> None:
        for index in range(count):
            self.noop.send(index, 0)


class Dramatiq:
    """Drive dramatiq."""

    name = "dramatiq"
    distribution = "dramatiq"
    engine = Engine.REDIS
    plan = Plan(drain_jobs=8_000)
    settings = {"threads": "1", "prefetch": str(PREFETCH), "appendfsync": "always"}
    uvloop = False

    async def prepare(self, url: str) -> None:
        del url

    @asynccontextmanager
    async def producer(self, url):
        broker, noop = new_broker(url)
        try:
            yield DramatiqProducer(noop)
        finally:
            broker.close()

    async def unfinished(self, url: str) -> int:
        with Redis.from_url(url) as client:
            return client.hlen("dramatiq:default.msgs")

    async def work(self, url, ledger, purpose) -> None:
        del purpose
        broker, _ = new_broker(url, ledger)
        worker = dramatiq.Worker(broker, worker_threads=1)
        ledger.wait_at_gate()
        worker.start()
        await asyncio.Event().wait()


if __name__ == "__main__":
    run(Dramatiq(), "benchmarks.peers.dramatiq")

"""celery on Redis: one solo worker, generous prefetch, results ignored.

Runs in its own environment; left out of type checking.
"""

from __future__ import annotations

import os
from contextlib import asynccontextmanager

from celery import Celery
from redis import Redis

from benchmarks.harness.contest import run
from benchmarks.harness.contestant import Engine, Plan

PREFETCH = 64


def new_app(url: str, ledger=None):
    """Make an application whose one task tells the ledger."""
    app = Celery(broker=url)
    app.conf.update(task_ignore_result=True, worker_prefetch_multiplier=PREFETCH)

    @app.task(name="noop")
    def noop(index: int, sent_ns: int) -> None:
        ledger.start(index, sent_ns)

    return app, noop


class CeleryProducer:
    """Enqueue over one producer of celery's pool."""

    def __init__(self, noop, producer) -> None:
        self.noop = noop
        self.producer = producer

    async def enqueue(self, index: int, sent_ns: int) -> None:
        self.noop.apply_async((index, sent_ns), producer=self.producer)

    async def enqueue_many(self, count: int) -> None:
        for index in range(count):
            self.noop.apply_async((index, 0), producer=self.producer)


class CeleryContestant:
    """Drive celery."""

    name = "celery"
    distribution = "celery"
    engine = Engine.REDIS
    plan = Plan(drain_jobs=8_000)
    settings = {"pool": "solo", "prefetch": f"x {PREFETCH}", "results": "off", "appendfsync": "always"}
    uvloop = False

    async def prepare(self, url: str) -> None:
        del url

    @asynccontextmanager
    async def producer(self, url):
        app, noop = new_app(url)
        with app.producer_pool.acquire() as producer:
            yield CeleryProducer(noop, producer)
        app.close()

    async def unfinished(self, url: str) -> int:
        with Redis.from_url(url) as client:
            return client.llen("celery") + client.hlen("unacked")

    async def work(self, url, ledger, purpose) -> None:
        del purpose
        app, _ = new_app(url, ledger)
        worker = app.Worker(
            pool="solo",
            hostname=f"worker-{os.getpid()}@localhost",
            loglevel="ERROR",
            without_gossip=True,
            without_mingle=True,
            without_heartbeat=True,
        )
        ledger.wait_at_gate()
        worker.start()


if __name__ == "__main__":
    run(CeleryContestant(), "benchmarks.peers.celery")

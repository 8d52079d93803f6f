"""awa on PostgreSQL: one logical queue over four physical ones, filled by COPY.

Runs in its own environment; left out of type checking.
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from dataclasses import dataclass

from awa import AsyncClient, PartitionedQueue

from benchmarks.harness.contest import run
from benchmarks.harness.contestant import Engine, Plan, Purpose
from benchmarks.harness.databases import count_sql

POOL = 20
PARTITIONS = PartitionedQueue("noop", 4)
MAX_WORKERS = 1_024
CLAIM_BATCH = 512
BULK = 5_000
UNFINISHED = """
    SELECT (SELECT count(*) FROM awa.ready_entries)
         - (SELECT count(*) FROM awa.done_entries)
         - (SELECT coalesce(sum(completed_count), 0) FROM awa.receipt_completion_batches)
"""


@dataclass
class Noop:
    """What a job carries."""

    index: int
    sent_ns: int


class AwaProducer:
    """Enqueue over awa's own pool."""

    def __init__(self, client: AsyncClient) -> None:
        self.client = client

    async def enqueue(self, index: int, sent_ns: int) -> None:
        await self.client.insert(Noop(index, sent_ns), **PARTITIONS.route_by_index(0))

    async def enqueue_many(self, count: int) -> None:
        for begin in range(0, count, BULK):
            jobs = [Noop(index, 0) for index in range(begin, min(begin + BULK, count))]
            routes = [PARTITIONS.route_by_index(job.index) for job in jobs]
            await self.client.enqueue_many_copy(jobs, opts=routes)


class Awa:
    """Drive awa."""

    name = "awa"
    distribution = "awa-pg"
    engine = Engine.POSTGRES
    plan = Plan(drain_jobs=80_000)
    settings = {
        "pool": str(POOL),
        "partitions": "4 for the drain, 1 for pick-up",
        "max workers": str(MAX_WORKERS),
        "claim batch": str(CLAIM_BATCH),
        "bulk": "enqueue_many_copy",
    }
    uvloop = False

    async def prepare(self, url: str) -> None:
        async with AsyncClient(url) as client:
            await client.migrate()
            await client.install_queue_storage()

    @asynccontextmanager
    async def producer(self, url):
        async with AsyncClient(url, max_connections=POOL) as client:
            yield AwaProducer(client)

    async def unfinished(self, url: str) -> int:
        return count_sql(url, UNFINISHED)

    async def work(self, url, ledger, purpose) -> None:
        client = AsyncClient(url, max_connections=POOL)

        @client.task(Noop, queue=PARTITIONS.physical_queues[0])
        async def noop(job) -> None:
            ledger.start(job.args.index, job.args.sent_ns)

        queues = PARTITIONS.queue_configs(max_workers_per_partition=MAX_WORKERS // 4, claim_batch_size=CLAIM_BATCH)
        ledger.wait_at_gate()
        await client.start(queues[:1] if purpose is Purpose.PICKUP else queues)
        await asyncio.Event().wait()


if __name__ == "__main__":
    run(Awa(), "benchmarks.peers.awa")

"""pgqueuer on PostgreSQL: asyncpg, uvloop, batches of 500, finished rows deleted.

Runs in its own environment; left out of type checking.
"""

from __future__ import annotations

import struct
from contextlib import asynccontextmanager

import asyncpg
from pgqueuer import PgQueuer
from pgqueuer.queries import Queries

from benchmarks.harness.contest import run
from benchmarks.harness.contestant import Engine, Plan
from benchmarks.harness.databases import count_sql

BATCH = 500
BULK = 2_000
PAYLOAD = struct.Struct("QQ")


class PgqueuerProducer:
    """Enqueue over one asyncpg connection."""

    def __init__(self, queries: Queries) -> None:
        self.queries = queries

    async def enqueue(self, index: int, sent_ns: int) -> None:
        await self.queries.enqueue("noop", PAYLOAD.pack(index, sent_ns))

    async def enqueue_many(self, count: int) -> None:
        for begin in range(0, count, BULK):
            indices = range(begin, min(begin + BULK, count))
            payloads = [PAYLOAD.pack(index, 0) for index in indices]
            await self.queries.enqueue(["noop"] * len(payloads), payloads, [0] * len(payloads))


class Pgqueuer:
    """Drive pgqueuer."""

    name = "pgqueuer"
    distribution = "pgqueuer"
    engine = Engine.POSTGRES
    plan = Plan(drain_jobs=80_000)
    settings = {"driver": "asyncpg", "loop": "uvloop", "batch size": str(BATCH), "history": "rows deleted"}
    uvloop = True

    async def prepare(self, url: str) -> None:
        connection = await asyncpg.connect(url)
        await Queries.from_asyncpg_connection(connection).install()
        await connection.close()

    @asynccontextmanager
    async def producer(self, url):
        connection = await asyncpg.connect(url)
        try:
            yield PgqueuerProducer(Queries.from_asyncpg_connection(connection))
        finally:
            await connection.close()

    async def unfinished(self, url: str) -> int:
        return count_sql(url, "SELECT count(*) FROM pgqueuer")

    async def work(self, url, ledger, purpose) -> None:
        del purpose
        worker = PgQueuer.from_asyncpg_connection(await asyncpg.connect(url))

        @worker.entrypoint("noop")
        async def noop(job) -> None:
            ledger.start(*PAYLOAD.unpack(job.payload))

        ledger.wait_at_gate()
        await worker.run(batch_size=BATCH)


if __name__ == "__main__":
    run(Pgqueuer(), "benchmarks.peers.pgqueuer")

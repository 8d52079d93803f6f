"""oban on PostgreSQL: uvloop, 200 jobs at a time.

Runs in its own environment, which needs Python 3.12; left out of type checking.
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager

import orjson
from oban import Oban, worker
from oban.schema import install
from psycopg.types.json import set_json_dumps, set_json_loads

from benchmarks.harness.contest import run
from benchmarks.harness.contestant import Engine, Plan
from benchmarks.harness.databases import count_sql

LIMIT = 200
BULK = 1_000
LEDGER = None


@worker(queue="noop")
class Noop:
    """Tell the ledger of this worker process."""

    async def process(self, job) -> None:
        LEDGER.start(job.args["index"], job.args["sent_ns"])


class ObanProducer:
    """Enqueue over oban's pool."""

    def __init__(self, oban: Oban) -> None:
        self.oban = oban

    async def enqueue(self, index: int, sent_ns: int) -> None:
        await self.oban.enqueue(Noop.new({"index": index, "sent_ns": sent_ns}))

    async def enqueue_many(self, count: int) -> None:
        for begin in range(0, count, BULK):
            indices = range(begin, min(begin + BULK, count))
            await self.oban.enqueue_many([Noop.new({"index": i, "sent_ns": 0}) for i in indices])


@asynccontextmanager
async def open_pool(url: str):
    """Open oban's pool, with the JSON library its command line sets up."""
    set_json_dumps(orjson.dumps)
    set_json_loads(orjson.loads)
    pool = await Oban.create_pool(url)
    try:
        yield pool
    finally:
        await pool.close()


class ObanContestant:
    """Drive oban."""

    name = "oban"
    distribution = "oban"
    engine = Engine.POSTGRES
    plan = Plan(drain_jobs=20_000)
    settings = {"loop": "uvloop", "queue limit": str(LIMIT), "JSON": "orjson"}
    uvloop = True

    async def prepare(self, url: str) -> None:
        async with open_pool(url) as pool:
            await install(pool)

    @asynccontextmanager
    async def producer(self, url):
        async with open_pool(url) as pool, Oban(pool=pool) as oban:
            yield ObanProducer(oban)

    async def unfinished(self, url: str) -> int:
        return count_sql(url, "SELECT count(*) FROM oban_jobs WHERE state <> 'completed'")

    async def work(self, url, ledger, purpose) -> None:
        del purpose
        global LEDGER  # noqa: PLW0603 - handlers are classes that oban finds by name
        LEDGER = ledger
        async with open_pool(url) as pool:
            ledger.wait_at_gate()
            async with Oban(pool=pool, queues={"noop": LIMIT}):
                await asyncio.Event().wait()


if __name__ == "__main__":
    run(ObanContestant(), "benchmarks.peers.oban")

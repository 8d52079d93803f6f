"""procrastinate on PostgreSQL: five jobs at a time, LISTEN/NOTIFY, successful jobs deleted.

Runs in its own environment; left out of type checking.
"""

from __future__ import annotations

from contextlib import asynccontextmanager

from procrastinate import App, PsycopgConnector

from benchmarks.harness.contest import run
from benchmarks.harness.contestant import Engine, Plan
from benchmarks.harness.databases import count_sql

CONCURRENCY = 5
BULK = 1_000


def new_app(url: str, ledger=None) -> App:
    """Make an application whose one task tells the ledger."""
    app = App(connector=PsycopgConnector(conninfo=url))

    @app.task(name="noop", queue="noop")
    async def noop(index: int, sent_ns: int) -> None:
        ledger.start(index, sent_ns)

    return app


class ProcrastinateProducer:
    """Enqueue over procrastinate's pool."""

    def __init__(self, app: App) -> None:
        self.noop = app.tasks["noop"]

    async def enqueue(self, index: int, sent_ns: int) -> None:
        await self.noop.defer_async(index=index, sent_ns=sent_ns)

    async def enqueue_many(self, count: int) -> None:
        for begin in range(0, count, BULK):
            indices = range(begin, min(begin + BULK, count))
            await self.noop.batch_defer_async(*({"index": i, "sent_ns": 0} for i in indices))


class Procrastinate:
    """Drive procrastinate."""

    name = "procrastinate"
    distribution = "procrastinate"
    engine = Engine.POSTGRES
    plan = Plan(drain_jobs=5_000)
    settings = {"driver": "psycopg binary", "concurrency": str(CONCURRENCY), "history": "rows deleted"}
    uvloop = False

    async def prepare(self, url: str) -> None:
        async with new_app(url).open_async() as app:
            await app.schema_manager.apply_schema_async()

    @asynccontextmanager
    async def producer(self, url):
        async with new_app(url).open_async() as app:
            yield ProcrastinateProducer(app)

    async def unfinished(self, url: str) -> int:
        return count_sql(url, "SELECT count(*) FROM procrastinate_jobs WHERE status <> 'succeeded'")

    async def work(self, url, ledger, purpose) -> None:
        del purpose
        async with new_app(url, ledger).open_async() as app:
            ledger.wait_at_gate()
            await app.run_worker_async(concurrency=CONCURRENCY, delete_jobs="successful", listen_notify=True)


if __name__ == "__main__":
    run(Procrastinate(), "benchmarks.peers.procrastinate")

"""perdure as a contestant: the same phases as its peers, history kept, durable settings."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import ClassVar

from benchmarks.harness.contestant import Engine, Plan, Purpose
from benchmarks.harness.ledger import WorkerLedger
from benchmarks.ours.addresses import address
from perdure import App, Job, WorkerSettings
from perdure.worker.interpreter import set_up_for_work

CONCURRENCY = 1_000
BATCH = 500
UNFINISHED = """SELECT CASE WHEN EXISTS (SELECT 1 FROM {0}lease) OR EXISTS (SELECT 1 FROM {0}ready)
                       OR EXISTS (SELECT 1 FROM {0}parked) THEN 1 ELSE 0 END"""


class PerdureProducer:
    """Enqueue through one open app."""

    def __init__(self, app: App, noop: Job[[int, int], None]) -> None:
        self.app = app
        self.noop = noop

    async def enqueue(self, index: int, sent_ns: int) -> None:
        """Enqueue one job and return once it is durable."""
        await self.noop.enqueue(index, sent_ns)

    async def enqueue_many(self, count: int) -> None:
        """Enqueue `count` untimed jobs in one call."""
        await self.app.enqueue_many(self.noop.call(index, 0) for index in range(count))


class Perdure:
    """Drive perdure on one engine."""

    name: ClassVar[str] = "perdure"
    distribution: ClassVar[str] = "perdure"
    engine: ClassVar[Engine]
    plan: ClassVar[Plan] = Plan(drain_jobs=240_000)
    settings: ClassVar[Mapping[str, str]] = {
        "concurrency": str(CONCURRENCY),
        "claim batch": str(BATCH),
        "history": "kept",
        "loop": "asyncio",
    }
    uvloop: ClassVar[bool] = False

    def address(self, url: str) -> str:
        """Give perdure's URL for a database of the harness."""
        return address(self.engine, url)

    async def prepare(self, url: str) -> None:
        """Create the tables."""
        async with App(self.address(url)):
            pass

    @asynccontextmanager
    async def producer(self, url: str) -> AsyncIterator[PerdureProducer]:
        """Open a producer."""
        async with App(self.address(url)) as app:
            yield PerdureProducer(app, self.declare(app, None))

    def declare(self, app: App, ledger: WorkerLedger | None) -> Job[[int, int], None]:
        """Declare the job that does nothing but record its start."""
        return declare(app, ledger.start if ledger is not None else lambda _index, _sent: None)

    async def unfinished(self, url: str) -> int:
        """Whether any job is left that is not final, 1 or 0: asked of the bare database, as of the peers'."""
        raise NotImplementedError

    async def work(self, url: str, ledger: WorkerLedger, purpose: Purpose) -> None:
        """Run a worker until the process is ended."""
        del purpose
        async with App(self.address(url)) as app:
            self.declare(app, ledger)
            worker = await app.worker(WorkerSettings(concurrency=CONCURRENCY, claim_batch=BATCH))
            set_up_for_work(app.kinds)  # as `perdure worker` does
            ledger.wait_at_gate()
            await worker.run()


def declare(app: App, start: Callable[[int, int], None]) -> Job[[int, int], None]:
    """Declare the job that does nothing but this."""

    @app.job
    async def noop(index: int, sent_ns: int) -> None:
        start(index, sent_ns)

    return noop

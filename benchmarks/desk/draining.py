"""The worker that the desk is measured beside: `python -m benchmarks.desk.draining URL LEDGER`."""

from __future__ import annotations

import asyncio
import signal
import sys
from pathlib import Path
from typing import Final

from benchmarks.harness.ledger import WorkerLedger
from perdure import App, WorkerSettings

QUEUE: Final = "drained"
_STOCK: Final = 40_000  # jobs that are ready at most
_ADDED: Final = 10_000


async def drain(url: str, ledger: WorkerLedger) -> None:
    """Run no-op jobs until this process is told to end; more are enqueued as they run."""
    async with App(url) as app:

        async def noop() -> None:
            ledger.start(0, 0)

        job = app.job(name="noop", queue=QUEUE)(noop)
        worker = await app.worker(WorkerSettings(queues=[QUEUE], concurrency=1_000))
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, worker.stop)
        await app.enqueue_many(job.call() for _ in range(_STOCK))
        running = asyncio.create_task(worker.run())
        enqueued = _STOCK
        while not running.done():
            if enqueued - worker.acknowledged < _STOCK - _ADDED:
                await app.enqueue_many(job.call() for _ in range(_ADDED))
                enqueued += _ADDED
            await asyncio.sleep(0.01)
        await running


if __name__ == "__main__":
    asyncio.run(drain(sys.argv[1], WorkerLedger(Path(sys.argv[2]), 0)))

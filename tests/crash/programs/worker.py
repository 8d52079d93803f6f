"""A worker to be killed, stopped, cut off and woken: `URL LEDGER NAME [quick | calm] [unfenced] [counting]`."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from datetime import timedelta
from pathlib import Path
from typing import Final

from msgspec.structs import replace
from tests.crash.harness.ledger import Ledger
from tests.crash.programs.jobs import build_app
from tests.crash.programs.sabotage import count_tokens, take_out_the_fence

from perdure import StoreUnavailable, WorkerSettings
from perdure.events import Event, StaleWrites, StoreTrouble, WorkerLost, WorkerOpened
from perdure.worker.worker import Worker

QUICK: Final = WorkerSettings(
    concurrency=20,
    heartbeat=timedelta(milliseconds=500),
    lease=timedelta(seconds=2),
    sweep=timedelta(milliseconds=500),
    poll=timedelta(milliseconds=200),
)


CALM: Final = replace(QUICK, sweep=timedelta(seconds=3))


class Scribe:
    """Writes what the worker says of itself to the ledger."""

    def __init__(self, ledger: Ledger, name: str) -> None:
        self._ledger = ledger
        self._name = name

    def hear(self, event: Event) -> None:
        """Note what matters."""
        match event:
            case StaleWrites():
                for job_id in event.job_ids:
                    self._ledger.note("stale", job_id)
            case WorkerLost():
                self._ledger.note("lost", os.getpid())
            case StoreTrouble():
                self._ledger.note("trouble", event.what)
            case WorkerOpened():
                self._ledger.note("open", os.getpid(), self._name)

    async def count_unsure(self, worker: Worker) -> None:
        """Note writes that had been applied although their answer was lost: no event tells of them."""
        told = 0
        while True:
            await asyncio.sleep(0.02)
            if (count := worker._parts.attempts.acknowledger.unsure) > told:
                self._ledger.note("unsure", count - told)
                told = count


async def main(url: str, ledger: Ledger, name: str, settings: WorkerSettings) -> None:
    """Work until told to stop; a database that is away at the start is waited for."""
    app = build_app(url, ledger, name)
    scribe = Scribe(ledger, name)
    app.subscribe(scribe.hear)
    while True:
        worker: Worker | None = None
        try:
            worker = await app.worker(settings)
            await _work(worker, scribe)
        except StoreUnavailable:
            await app.close()
            if worker is not None and worker.opened.is_set():
                raise
            await asyncio.sleep(0.1)
        else:
            await app.close()
            return


async def _work(worker: Worker, scribe: Scribe) -> None:
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, worker.stop)
    counting = asyncio.create_task(scribe.count_unsure(worker))
    try:
        await worker.run()
    finally:
        counting.cancel()


if __name__ == "__main__":
    _, where, book, myself, *manners = sys.argv
    if "unfenced" in manners:
        take_out_the_fence()
    if "counting" in manners:
        count_tokens()
    settings = QUICK if "quick" in manners else CALM if "calm" in manners else WorkerSettings()
    asyncio.run(main(where, Ledger(Path(book)), myself, settings))

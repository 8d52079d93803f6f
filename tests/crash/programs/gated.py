"""A worker whose jobs pass a gate with few slots for each room: `gated.py URL LEDGER NAME`."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from pathlib import Path
from typing import Final

from tests.crash.harness.ledger import Ledger
from tests.crash.programs.worker import QUICK

from perdure import App, Backoff, Concurrency, Context, Retry
from perdure.events import Event, WorkerOpened

ROOMS: Final = ("hall", "attic")
PLACES: Final = 12
"""In each room: enough for some of them to be lent."""


def build_app(url: str, ledger: Ledger) -> App:
    """An app whose jobs note when they enter a room and when they leave it."""
    app = App(url, retry=Retry(attempts=9, backoff=Backoff.fixed("50ms")))

    async def visit(ctx: Context, room: str, seconds: float) -> None:
        ledger.note("in", room, ctx.job_id, os.getpid(), time.monotonic_ns())
        await asyncio.sleep(seconds)
        ledger.note("out", room, ctx.job_id, os.getpid(), time.monotonic_ns())

    app.job(gates=Concurrency(PLACES, key="room"))(visit)
    return app


async def main(url: str, ledger: Ledger, name: str) -> None:
    """Work until told to stop."""
    app = build_app(url, ledger)

    def hear(event: Event) -> None:
        if isinstance(event, WorkerOpened):
            ledger.note("open", os.getpid(), name)

    app.subscribe(hear)
    async with app:
        worker = await app.worker(QUICK)
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, worker.stop)
        await worker.run()


if __name__ == "__main__":
    _, where, book, myself = sys.argv
    asyncio.run(main(where, Ledger(Path(book)), myself))

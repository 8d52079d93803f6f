"""A worker with fifty schedules, on a clock that the test moves: `scheduled.py URL LEDGER NAME CLOCK`."""

from __future__ import annotations

import asyncio
import mmap
import os
import signal
import struct
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from tests.crash.harness.ledger import Ledger
from tests.crash.programs.worker import QUICK

from perdure import App, Context
from perdure.events import Event, WorkerOpened

INTERVALS: Final = (1, 2, 3, 4, 5)
SCHEDULES: Final = tuple(
    (f"every-{number % len(INTERVALS) + 1}s-{number:02}", INTERVALS[number % 5]) for number in range(50)
)


class MovedClock:
    """The machine's clock, off by as many seconds as a file says; all processes of a test share the file."""

    def __init__(self, path: Path) -> None:
        with path.open("r+b") as file:
            self._offset = mmap.mmap(file.fileno(), 8)

    def now(self) -> datetime:
        """The time of day as this house tells it."""
        [offset] = struct.unpack("d", self._offset[:8])
        return datetime.fromtimestamp(time.time() + offset, UTC)  # noqa: TID251 - this is a clock

    def monotonic(self) -> float:
        """Seconds that only go forward."""
        return time.monotonic()


def move_clock(path: Path, seconds: float) -> None:
    """Put the clock forward or back to be off by so many seconds."""
    with path.open("r+b" if path.exists() else "w+b") as file:
        file.write(struct.pack("d", seconds))


def build_app(url: str, clock: MovedClock, ledger: Ledger) -> App:
    """An app whose scheduled jobs write their nominal times to the ledger."""
    app = App(url, clock=clock)

    async def tell(ctx: Context) -> None:
        ledger.note("ran", ctx.meta["schedule"], ctx.meta["nominal_at"], ctx.job_id)

    job = app.job(name="tell")(tell)
    for name, seconds in SCHEDULES:
        app.cron(f"@every {seconds}s", schedule=name, missed="once", within=timedelta(hours=2), overlap="allow")(job)
    return app


async def main(url: str, ledger: Ledger, name: str, clock: MovedClock) -> None:
    """Work until told to stop."""
    app = build_app(url, clock, ledger)

    def hear(event: Event) -> None:
        if isinstance(event, WorkerOpened):
            ledger.note("open", os.getpid(), name)

    app.subscribe(hear)
    async with app:
        worker = await app.worker(QUICK)
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, worker.stop)
        await worker.run()


if __name__ == "__main__":
    _, where, book, myself, clock_file = sys.argv
    asyncio.run(main(where, Ledger(Path(book)), myself, MovedClock(Path(clock_file))))

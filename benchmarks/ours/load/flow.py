"""Full flow for over a minute, to see whether a worker keeps its pace while history and dead rows pile up.

A producer keeps the queue filled, one worker empties it. What is compared is the number of jobs acknowledged
in the last 15 seconds against the first 15. On PostgreSQL also with a snapshot held open all the while (a backup, a
long report), which stops vacuum. Memory costs the same all the while, see `harness.memory`.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

from benchmarks.harness.contestant import Engine
from benchmarks.harness.databases import new_database
from benchmarks.harness.memory import memory_at_hand_in_use
from benchmarks.ours.addresses import address
from perdure import App, WorkerSettings

WARM_UP = 3
WINDOW = 15
LENGTH = 75
HIGH = 60_000  # jobs in the queue
PIECE = 10_000


def steadiness(engine: Engine, server: str, *, held_snapshot: bool = False, seconds: int = LENGTH) -> float:
    """What the last window brought, against the first."""
    with new_database(engine, server) as database, tempfile.NamedTemporaryFile(prefix="flow-") as progress:
        url = address(engine, database)
        asyncio.run(_prepare(url))
        hold = _held_snapshot(database) if held_snapshot else nullcontext()
        with (
            hold,
            memory_at_hand_in_use(),
            _process("produce", url, progress.name),
            _process("work", url, progress.name),
        ):
            counts = _counts_each_second(Path(progress.name), seconds)
    return (counts[-1] - counts[-1 - WINDOW]) / (counts[WINDOW] - counts[0])


async def _prepare(url: str) -> None:
    async with App(url) as app:
        noop = app.job(_noop)
        await app.enqueue_many(noop.call(index) for index in range(HIGH))


async def _noop(index: int) -> None:
    del index


@contextmanager
def _held_snapshot(url: str) -> Iterator[None]:
    import psycopg  # noqa: PLC0415 - only for PostgreSQL

    with psycopg.connect(url) as connection:
        connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        connection.execute("SELECT 1")
        yield


@contextmanager
def _process(role: str, url: str, progress: str) -> Iterator[None]:
    process = subprocess.Popen([sys.executable, "-m", "benchmarks.ours.load.flow", role, url, progress])
    try:
        yield
    finally:
        process.kill()
        process.wait()


def _counts_each_second(progress: Path, seconds: int) -> list[int]:
    while not _acknowledged(progress):
        time.sleep(0.05)
    begun = time.monotonic() + WARM_UP
    counts = []
    for second in range(seconds + 1):
        time.sleep(max(begun + second - time.monotonic(), 0))
        counts.append(_acknowledged(progress))
    return counts


def _acknowledged(progress: Path) -> int:
    return int(progress.read_text() or 0)


def _tell(progress: Path, acknowledged: int) -> None:
    with progress.open("r+b") as file:  # written over in place: a reader never sees half of it
        file.write(b"%012d" % acknowledged)


async def _work(url: str, progress: Path) -> None:
    async with App(url) as app:
        app.job(_noop)
        worker = await app.worker(WorkerSettings(concurrency=1_000))
        running = asyncio.create_task(worker.run())
        while not running.done():
            await asyncio.sleep(0.05)
            _tell(progress, worker.acknowledged)


async def _produce(url: str, progress: Path) -> None:
    produced = HIGH
    async with App(url) as app:
        noop = app.job(_noop)
        while True:
            if produced - _acknowledged(progress) < HIGH - PIECE:
                await app.enqueue_many(noop.call(index) for index in range(PIECE))
                produced += PIECE
            else:
                await asyncio.sleep(0.01)


if __name__ == "__main__":
    asyncio.run({"work": _work, "produce": _produce}[sys.argv[1]](sys.argv[2], Path(sys.argv[3])))

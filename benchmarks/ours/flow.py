"""Full flow for over a minute, to see whether a worker keeps its pace while history and dead rows pile up.

A producer keeps the queue between two marks, one worker empties it. What is compared is the number of jobs acknowledged
in the last 15 seconds against the first 15. On PostgreSQL also with a snapshot held open all the while (a backup, a
long report), which stops vacuum.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

from benchmarks.harness.contestant import Engine
from benchmarks.harness.databases import new_database
from benchmarks.ours.addresses import address
from perdure import App

WARM_UP = 3
WINDOW = 15
LENGTH = 75
LOW, HIGH = 20_000, 60_000


def steadiness(engine: Engine, server: str, *, held_snapshot: bool = False, seconds: int = LENGTH) -> dict[str, float]:
    """The rates of the first and last window, and their ratio."""
    with new_database(engine, server) as database:
        url = address(engine, database)
        asyncio.run(_prepare(url))
        hold = _held_snapshot(database) if held_snapshot else nullcontext()
        with hold, _process("produce", url), _process("work", url) as worker:
            counts = _counts_each_second(worker, seconds)
    first = (counts[WINDOW] - counts[0]) / WINDOW
    last = (counts[-1] - counts[-1 - WINDOW]) / WINDOW
    return {"first": first, "last": last, "ratio": last / first}


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
def _process(role: str, url: str) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", "benchmarks.ours.flow", role, url]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        if process.stdout:
            process.stdout.close()


def _counts_each_second(worker: subprocess.Popen[str], seconds: int) -> list[int]:
    assert worker.stdout is not None
    lines = [int(worker.stdout.readline()) for _ in range(WARM_UP + seconds + 1)]
    return lines[WARM_UP:]


async def _work(url: str) -> None:
    from perdure import WorkerSettings  # noqa: PLC0415 - a role of this file

    async with App(url) as app:
        app.job(_noop)
        worker = await app.worker(WorkerSettings(concurrency=1_000))
        running = asyncio.create_task(worker.run())
        begun = time.monotonic()
        second = 0
        while not running.done():
            second += 1
            await asyncio.sleep(begun + second - time.monotonic())
            print(worker.acknowledged, flush=True)


async def _produce(url: str) -> None:
    async with App(url) as app:
        noop = app.job(_noop)
        store = await app.store()
        while True:
            ready = sum(count.jobs for count in await store.counts(cap=HIGH) if count.state == "ready")
            if ready < LOW:
                await app.enqueue_many(noop.call(index) for index in range(LOW))
            else:
                await asyncio.sleep(0.05)


if __name__ == "__main__":
    asyncio.run({"work": _work, "produce": _produce}[sys.argv[1]](sys.argv[2]))

"""What hooks cost: the same jobs drained with nothing, with one empty middleware, and with every attempt logged.

`python -m benchmarks.ours.observing.hooks [--engine sqlite|postgres] [--rounds N]` prints the figures of each engine.

The drains take turns on one database, each round in another order, and the medians count. A ratio compares two drains
of the same round. The processor time that this process uses per job stands beside the jobs per second: other programs
on the machine change it less, and the least of all rounds hardly at all. It leaves out what PostgreSQL's own processes
use.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import os
import statistics
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import structlog
from msgspec import Struct

from benchmarks.harness.contestant import Engine
from benchmarks.harness.databases import new_database
from benchmarks.harness.postgres import postgres_server
from benchmarks.ours.addresses import address
from perdure import App, AttemptLog, Context, WorkerSettings

JOBS: Final = 10_000
ROUNDS: Final = 45
PLAIN, MIDDLEWARE, ASYNC_MIDDLEWARE, LOGGED = "plain", "one middleware", "one async middleware", "attempts logged"
PARTS: Final = (PLAIN, MIDDLEWARE, ASYNC_MIDDLEWARE, LOGGED)


class Drain(Struct, frozen=True):
    """How fast jobs were drained, and what one has cost this process."""

    per_second: float
    cpu_micros: float


class Cost(Struct, frozen=True):
    """The medians of one part, and of its ratios to the plain drain of the same round.

    `least_cpu` is the least processor time of all rounds, and `least` its ratio to that of the plain drains.
    """

    drain: Drain
    speed: float
    cpu: float
    least_cpu: float
    least: float


async def _noop() -> None: ...


def _empty(ctx: Context) -> Iterator[None]:
    del ctx
    yield


async def _empty_async(ctx: Context) -> AsyncIterator[None]:
    del ctx
    yield


def hook_cost(engine: Engine, server: str, *, jobs: int = JOBS, rounds: int = ROUNDS) -> dict[str, Cost]:
    """What each part costs."""
    drains: dict[str, list[Drain]] = {name: [] for name in PARTS}
    with new_database(engine, server) as database, _quiet_log():
        url = address(engine, database)
        asyncio.run(_drained(url, PLAIN, jobs))  # to warm up
        for number in range(rounds):
            begin = number % len(PARTS)
            for name in (*PARTS[begin:], *PARTS[:begin]):
                drains[name].append(asyncio.run(_drained(url, name, jobs)))
    return {name: _cost(some, drains[PLAIN]) for name, some in drains.items()}


async def _drained(url: str, name: str, jobs: int) -> Drain:
    async with App(url) as app:
        noop = app.job(name="noop")(_noop)
        if name == MIDDLEWARE:
            app.middleware(_empty)
        if name == ASYNC_MIDDLEWARE:
            app.middleware(_empty_async)
        if name == LOGGED:
            app.log_events(AttemptLog())
        await app.enqueue_many(noop.call() for _ in range(jobs))
        worker = await app.worker(WorkerSettings(concurrency=1_000))
        gc.collect()
        begun, used = time.perf_counter(), time.process_time()
        running = asyncio.create_task(worker.run())
        while worker.acknowledged < jobs:  # noqa: ASYNC110 - what is measured must not be told to
            await asyncio.sleep(0.002)
        drain = Drain(jobs / (time.perf_counter() - begun), (time.process_time() - used) * 1e6 / jobs)
        worker.stop()
        await running
        return drain


@contextmanager
def _quiet_log() -> Iterator[None]:
    """Lines are made as ever, and written to nowhere."""
    with Path(os.devnull).open("w") as nowhere:
        structlog.configure(logger_factory=structlog.PrintLoggerFactory(nowhere))
        try:
            yield
        finally:
            structlog.reset_defaults()


def _cost(drains: list[Drain], plain: list[Drain]) -> Cost:
    median, pairs = statistics.median, list(zip(drains, plain, strict=True))
    return Cost(
        Drain(median(drain.per_second for drain in drains), median(drain.cpu_micros for drain in drains)),
        speed=median(drain.per_second / other.per_second for drain, other in pairs),
        cpu=median(drain.cpu_micros / other.cpu_micros for drain, other in pairs),
        least_cpu=min(drain.cpu_micros for drain in drains),
        least=min(drain.cpu_micros for drain in drains) / min(drain.cpu_micros for drain in plain),
    )


def main() -> None:
    """Print the figures of each engine."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--engine", choices=["sqlite", "postgres"], action="append")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    given = parser.parse_args()
    chosen = given.engine or ["sqlite", "postgres"]
    if "sqlite" in chosen:
        with tempfile.TemporaryDirectory(prefix="hooks-") as folder:
            _show(Engine.SQLITE, hook_cost(Engine.SQLITE, folder, rounds=given.rounds))
    if "postgres" in chosen:
        with postgres_server() as server:
            _show(Engine.POSTGRES, hook_cost(Engine.POSTGRES, server, rounds=given.rounds))


def _show(engine: Engine, figures: dict[str, Cost]) -> None:
    for name, cost in figures.items():
        speed = f"{cost.drain.per_second:,.0f} jobs/s ({cost.speed:.3f})"
        cpu = f"{cost.drain.cpu_micros:.2f} µs of processor time ({cost.cpu:.3f})"
        print(f"{engine} {name}: {speed}, {cpu}, at least {cost.least_cpu:.2f} µs ({cost.least:.3f})", flush=True)


if __name__ == "__main__":
    main()

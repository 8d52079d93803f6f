"""What metrics cost a worker, and how long a scrape of the cluster waits beside a million jobs.

`python -m benchmarks.ours.observing.metrics [--engine sqlite|postgres] [--rounds N] [--jobs N]` prints figures of each
engine.

Drains with metrics and without take turns on one database, each by a worker that has opened before. With metrics the
process is scraped as the drain begins and every 5 s, the cluster included; Prometheus' own default is a minute. Ratios
compare the two drains of a round, and their medians count: of processor time, which is that of this process and on
PostgreSQL of the server, and of wall-clock time, which other programs on the machine change a lot. They change the
ratio of the least processor times of all rounds hardly. Each figure stands beside what it must reach.

The database of `--jobs` is that of `benchmarks.desk`: 50 kinds in 5 queues, one job in ten dead. Both engines take
about four minutes on two free cores.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import statistics
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Final

from msgspec import Struct

from benchmarks.desk.filling import fill
from benchmarks.harness.contestant import Engine
from benchmarks.harness.databases import new_database, settle
from benchmarks.harness.server_time import ServerTime
from benchmarks.ours.__main__ import server_for
from benchmarks.ours.addresses import address
from perdure import App, WorkerSettings
from perdure.metrics import MetricsSettings, exporter
from perdure.worker.worker import Worker

DRAINED: Final = 100_000
ROUNDS: Final = 5
SCRAPES: Final = 30
JOBS: Final = 1_000_000
MOST_COST: Final = 1.05
MOST_MILLISECONDS: Final = 50
_BETWEEN: Final = 5.0  # seconds from one scrape to the next
_OPENING: Final = 0.3  # seconds, in which all loops have begun


class Scrapes(Struct, frozen=True):
    """How long scrapes took, in milliseconds, and how large the answer is. Other programs change the least hardly."""

    least: float
    median: float
    worst: float
    processor: float
    kilobytes: float


async def _noop() -> None: ...


class Drain(Struct, frozen=True):
    """What a drain took for each job, in microseconds: on the wall's clock, and of processors."""

    wall: float
    used: float


class Cost(Struct, frozen=True):
    """A drain with metrics by one without: medians of all rounds, and the least processor times."""

    used: float
    least: float
    wall: float


def metrics_cost(engine: Engine, server: str, rounds: int) -> Cost:
    """What a drain with metrics costs."""
    drains: dict[bool, list[Drain]] = {True: [], False: []}
    with new_database(engine, server) as database:
        url = address(engine, database)
        clock = ServerTime(url).seconds if engine is Engine.POSTGRES else _no_server
        asyncio.run(_drained(url, clock, scraped=True))  # to warm up
        for number in range(rounds):
            for scraped in _turns(number):
                drains[scraped].append(asyncio.run(_drained(url, clock, scraped=scraped)))
    pairs = list(zip(drains[True], drains[False], strict=True))
    return Cost(
        used=statistics.median(one.used / other.used for one, other in pairs),
        least=min(one.used for one in drains[True]) / min(one.used for one in drains[False]),
        wall=statistics.median(one.wall / other.wall for one, other in pairs),
    )


def _no_server() -> float:
    return 0.0


def _turns(number: int) -> tuple[bool, bool]:
    return (True, False) if number % 2 else (False, True)


async def _drained(url: str, server: Callable[[], float], *, scraped: bool) -> Drain:
    async with App(url) as app:
        noop = app.job(name="noop")(_noop)
        await app.enqueue_many(noop.call() for _ in range(DRAINED))
        worker = await app.worker(WorkerSettings(concurrency=1_000))
        worker.quiet("a benchmark")
        running = asyncio.create_task(worker.run())
        await worker.started()
        await asyncio.sleep(_OPENING)
        gc.collect()
        async with _scraping(app, worker, scraped=scraped):
            begun, used = time.perf_counter(), time.process_time() + server()
            worker.loud("a benchmark")
            while worker.acknowledged < DRAINED:  # noqa: ASYNC110 - what is measured must not be told to
                await asyncio.sleep(0.002)
            wall, used = time.perf_counter() - begun, time.process_time() + server() - used
        worker.stop()
        await running
        return Drain(wall * 1e6 / DRAINED, used * 1e6 / DRAINED)


@asynccontextmanager
async def _scraping(app: App, worker: Worker, *, scraped: bool) -> AsyncIterator[None]:
    if not scraped:
        yield
        return
    metrics = exporter(app, workers=[worker], cluster=True, settings=MetricsSettings(fresh=0))

    async def scrape() -> None:
        while True:
            await metrics.exposition()
            await asyncio.sleep(_BETWEEN)

    task = asyncio.create_task(scrape())
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        metrics.close()


def scrape_times(engine: Engine, server: str, jobs: int) -> Scrapes:
    """Scrapes of a database that holds so many jobs."""
    with new_database(engine, server) as database:
        took = fill(engine, database, jobs)
        settle(engine, database)
        print(f"{engine}: {jobs:,} jobs written in {took:.0f} s", flush=True)
        return asyncio.run(_scrape_times(address(engine, database)))


async def _scrape_times(url: str) -> Scrapes:
    async with App(url) as app:
        metrics = exporter(app, cluster=True, settings=MetricsSettings(fresh=0))
        size = len((await metrics.exposition()).body)
        taken, used = [], time.process_time()
        for _ in range(SCRAPES):
            begun = time.perf_counter()
            await metrics.exposition()
            taken.append((time.perf_counter() - begun) * 1e3)
        used = (time.process_time() - used) * 1e3 / SCRAPES
    return Scrapes(min(taken), statistics.median(taken), max(taken), used, size / 1_000)


def main() -> None:
    """Print the figures of each engine."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--engine", choices=["sqlite", "postgres"], action="append")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--jobs", type=int, default=JOBS)
    given = parser.parse_args()
    for engine in (Engine.SQLITE, Engine.POSTGRES):
        if engine.name.lower() in (given.engine or ["sqlite", "postgres"]):
            with server_for(engine) as server:
                if given.rounds:
                    cost = metrics_cost(engine, server, given.rounds)
                    print(f"{engine} drain with metrics: {_cost_told(cost)}", flush=True)
                if given.jobs:
                    seen = scrape_times(engine, server, given.jobs)
                    print(f"{engine} at {given.jobs:,} jobs: {_told(seen)}", flush=True)


def _cost_told(cost: Cost) -> str:
    bar = f"(must be at most {MOST_COST})"
    return f"processor time x {cost.used:.3f} {bar}, of the least {cost.least:.3f}; wall-clock time x {cost.wall:.3f}"


def _told(seen: Scrapes) -> str:
    times = f"median {seen.median:.1f} ms (must be at most {MOST_MILLISECONDS}), least {seen.least:.1f}"
    used = f"processor time here {seen.processor:.1f} ms; {seen.kilobytes:.0f} kB"
    return f"a scrape takes {times}, worst {seen.worst:.1f} ms; {used}"


if __name__ == "__main__":
    main()

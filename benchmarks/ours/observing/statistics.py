"""What statistics cost a worker, and how long a page waits for them.

`python -m benchmarks.ours.observing.statistics [--engine sqlite|postgres] [--rounds N] [--jobs N]` prints the figures
of each engine.

Drains with and without statistics take turns on one database, each by a worker that has opened before. A ratio compares
the two drains of a round; that of the processor time of this process is changed less by other programs on the machine,
and that of the least of all rounds hardly at all. Counts are written every 5 seconds, as by default, and at the end of
each drain.

The views are read from a database of a week in which 50 kinds ran in each of 5 queues, with two endings, and 8 workers
wrote: every stretch that a view reads is there for each of them.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import statistics
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Final

from msgspec import Struct

from benchmarks.harness.contestant import Engine
from benchmarks.harness.databases import new_database
from benchmarks.harness.postgres import postgres_server
from benchmarks.ours.addresses import address
from perdure import App, WorkerSettings
from perdure.app.connect import store_for
from perdure.clock import ManualClock
from perdure.domain.operate.statistics import BUCKETS, Ending
from perdure.operate.desk import Desk
from perdure.storage.operate.statistics import Counted, Flush

JOBS: Final = 60_000
ROUNDS: Final = 6
READS: Final = 15
KINDS: Final = 50
QUEUES: Final = 5
WORKERS: Final = 8
_NOW: Final = datetime(2026, 2, 3, 12, 0, 30, tzinfo=UTC)
_MINUTE: Final = timedelta(minutes=1)
_OPENING: Final = 0.3  # seconds, in which all loops have begun
_COUNTED: Final[str | int] = "5s"
_PLAIN: Final[str | int] = 0


class Drain(Struct, frozen=True):
    """How fast jobs were drained, and what one has cost this process."""

    per_second: float
    cpu_micros: float


class Cost(Struct, frozen=True):
    """Drains with statistics beside those without. `cpu` and `speed` are medians of ratios, `least` is of the least."""

    counted: Drain
    plain: Drain
    speed: float
    cpu: float
    least: float


async def _noop() -> None: ...


def statistics_cost(engine: Engine, server: str, *, jobs: int = JOBS, rounds: int = ROUNDS) -> Cost:
    """What counting costs."""
    counted: list[Drain] = []
    plain: list[Drain] = []
    with new_database(engine, server) as database:
        url = address(engine, database)
        asyncio.run(_drained(url, _COUNTED, jobs))  # to warm up
        for number in range(rounds):
            turns = [(_COUNTED, counted), (_PLAIN, plain)]
            for setting, drains in turns[:: 1 if number % 2 else -1]:
                drains.append(asyncio.run(_drained(url, setting, jobs)))
    return _cost(counted, plain)


async def _drained(url: str, setting: str | int, jobs: int) -> Drain:
    async with App(url) as app:
        noop = app.job(name="noop")(_noop)
        await app.enqueue_many(noop.call() for _ in range(jobs))
        worker = await app.worker(WorkerSettings(concurrency=1_000, statistics=setting))
        worker.quiet("a benchmark")
        running = asyncio.create_task(worker.run())
        await worker.started()
        await asyncio.sleep(_OPENING)
        gc.collect()
        begun, used = time.perf_counter(), time.process_time()
        worker.loud("a benchmark")
        while worker.acknowledged < jobs:  # noqa: ASYNC110 - what is measured must not be told to
            await asyncio.sleep(0.002)
        drain = Drain(jobs / (time.perf_counter() - begun), (time.process_time() - used) * 1e6 / jobs)
        worker.stop()
        await running
        return drain


def _cost(counted: list[Drain], plain: list[Drain]) -> Cost:
    median, pairs = statistics.median, list(zip(counted, plain, strict=True))
    return Cost(
        Drain(median(one.per_second for one in counted), median(one.cpu_micros for one in counted)),
        Drain(median(one.per_second for one in plain), median(one.cpu_micros for one in plain)),
        speed=median(one.per_second / other.per_second for one, other in pairs),
        cpu=median(one.cpu_micros / other.cpu_micros for one, other in pairs),
        least=min(one.cpu_micros for one in counted) / min(one.cpu_micros for one in plain),
    )


def view_times(engine: Engine, server: str, *, kinds: int = KINDS, reads: int = READS) -> dict[str, float]:
    """The median of milliseconds that each view takes."""
    with new_database(engine, server) as database:
        return asyncio.run(_view_times(address(engine, database), kinds, reads))


async def _view_times(url: str, kinds: int, reads: int) -> dict[str, float]:
    clock = ManualClock(_NOW)
    store = store_for(url, clock)
    await store.open()
    try:
        await store.migrate()
        for number, minute in enumerate(_minutes()):
            counts = tuple(_counts(minute, kinds))
            await store.add_statistics(Flush(f"worker {number % WORKERS}", number + 1, counts))
        while await store.roll_up_statistics():
            pass
        desk = Desk(store, "benchmark")
        views = {
            f"{span} {by or 'all'}{'' if points else ', totals'}": (span, by, points)
            for span in ("1h", "1d", "7d")
            for by, points in ((None, True), ("queue", True), ("kind", True), ("kind", False))
        }
        times: dict[str, float] = {}
        for name, (span, by, points) in views.items():
            taken = []
            for _ in range(reads):
                begun = time.perf_counter()
                await desk.statistics(span, by=by, points=points)  # type: ignore[arg-type] # mypy reads a str
                taken.append(time.perf_counter() - begun)
            times[name] = statistics.median(taken) * 1e3
        return times
    finally:
        await store.close()


def _minutes() -> Iterator[datetime]:
    """Each minute of the last hour, one of each quarter of the last day, and one of each hour of the last week."""
    now = _NOW.replace(second=0)
    yield from (now - place * 60 * _MINUTE for place in range(168, 24, -1))
    yield from (now - place * 15 * _MINUTE for place in range(96, 4, -1))
    yield from (now - place * _MINUTE for place in range(60, -1, -1))


def _counts(minute: datetime, kinds: int) -> Iterator[Counted]:
    histogram = tuple(5 if 3 <= bucket < 9 else 0 for bucket in range(BUCKETS))
    for queue in range(QUEUES):
        for kind in range(kinds):
            for ending in (Ending.SUCCEEDED, Ending.RETRIED):
                yield Counted(
                    minute=minute,
                    queue=f"queue {queue}",
                    kind=f"kind {kind}",
                    ending=ending,
                    jobs=30,
                    waited=1.0,
                    ran=1.0,
                    waits=histogram,
                    runs=histogram,
                )


def main() -> None:
    """Print the figures of each engine."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--engine", choices=["sqlite", "postgres"], action="append")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--jobs", type=int, default=JOBS, help="in each drain")
    given = parser.parse_args()
    chosen = given.engine or ["sqlite", "postgres"]
    if "sqlite" in chosen:
        with tempfile.TemporaryDirectory(prefix="statistics-") as folder:
            _show(Engine.SQLITE, folder, given.rounds, given.jobs)
    if "postgres" in chosen:
        with postgres_server() as server:
            _show(Engine.POSTGRES, server, given.rounds, given.jobs)


def _show(engine: Engine, server: str, rounds: int, jobs: int) -> None:
    if rounds:
        cost = statistics_cost(engine, server, jobs=jobs, rounds=rounds)
        for name, drain in (("with statistics", cost.counted), ("without", cost.plain)):
            print(
                f"{engine} {name}: {drain.per_second:,.0f} jobs/s, {drain.cpu_micros:.2f} µs of processor time per job"
            )
        print(
            f"{engine} ratios: speed {cost.speed:.3f}, processor time {cost.cpu:.3f}, least {cost.least:.3f}",
            flush=True,
        )
    for name, millis in view_times(engine, server).items():
        print(f"{engine} {name}: {millis:.1f} ms", flush=True)


if __name__ == "__main__":
    main()

"""What the event log costs the drain while it is on, and the space that an event takes.

`python -m benchmarks.ours.observing.events [--engine sqlite|postgres] [--rounds N]` prints the figures of each engine.

Drains with the log and without it take turns on one database. Processor time is that of this process, and on PostgreSQL
also that of the server, where the triggers run. Ratios compare the two drains of a round;
that of the least of all rounds is changed least by other programs on the machine.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import os
import sqlite3
import statistics
import tempfile
import time
from contextlib import closing, suppress
from datetime import timedelta
from pathlib import Path
from typing import Final

import psycopg
from msgspec import Struct

from benchmarks.harness.contestant import Engine
from benchmarks.harness.databases import count_sql, new_database
from benchmarks.harness.postgres import postgres_server
from benchmarks.ours.addresses import address
from perdure import App, WorkerSettings
from perdure.domain.operate.audit import By

JOBS: Final = 10_000
ROUNDS: Final = 8
_OPENING: Final = 0.3  # seconds, in which all loops have begun
_TICKS: Final = os.sysconf("SC_CLK_TCK")
_PARENT: Final = 0  # places of `_stat`
_OWN: Final = slice(10, 12)
_OWN_AND_ENDED: Final = slice(10, 14)


class Drain(Struct, frozen=True):
    """How fast jobs were drained, and the processor time of one, here and on the server."""

    per_second: float
    cpu_micros: float


class Cost(Struct, frozen=True):
    """Drains with the log beside those without; the ratios are medians, `least` is of the least.

    `event_bytes` is the space of one event of an empty job that succeeded, with indexes.
    """

    logged: Drain
    plain: Drain
    speed: float
    cpu: float
    least: float
    event_bytes: float


async def _noop() -> None: ...


def events_cost(engine: Engine, server: str, *, jobs: int = JOBS, rounds: int = ROUNDS) -> Cost:
    """What logging costs."""
    logged: list[Drain] = []
    plain: list[Drain] = []
    with new_database(engine, server) as database:
        url = address(engine, database)
        asyncio.run(_drained(url, jobs, on=True))  # to warm up
        event_bytes = _log_size(engine, database) / jobs
        for number in range(rounds):
            turns = [(True, logged), (False, plain)]
            for on, drains in turns[:: 1 if number % 2 else -1]:
                drains.append(asyncio.run(_drained(url, jobs, on=on)))
    median, pairs = statistics.median, list(zip(logged, plain, strict=True))
    return Cost(
        Drain(median(one.per_second for one in logged), median(one.cpu_micros for one in logged)),
        Drain(median(one.per_second for one in plain), median(one.cpu_micros for one in plain)),
        speed=median(one.per_second / other.per_second for one, other in pairs),
        cpu=median(one.cpu_micros / other.cpu_micros for one, other in pairs),
        least=min(one.cpu_micros for one in logged) / min(one.cpu_micros for one in plain),
        event_bytes=event_bytes,
    )


def _log_size(engine: Engine, database: str) -> int:
    """The bytes of the event log: its table and its indexes."""
    if engine is Engine.POSTGRES:
        return count_sql(database, "SELECT pg_total_relation_size('perdure.event_log')")
    with closing(sqlite3.connect(database)) as file:
        [size] = file.execute("SELECT sum(pgsize) FROM dbstat WHERE name = 'perdure_event_log'").fetchone()
        return int(size)


async def _drained(url: str, jobs: int, *, on: bool) -> Drain:
    async with App(url) as app:
        await (await app.store()).switch_event_log(timedelta(days=1) if on else None, By("benchmark"))
        noop = app.job(name="noop")(_noop)
        await app.enqueue_many(noop.call() for _ in range(jobs))
        worker = await app.worker(WorkerSettings(concurrency=1_000))
        worker.quiet("a benchmark")
        running = asyncio.create_task(worker.run())
        await worker.started()
        await asyncio.sleep(_OPENING)
        gc.collect()
        meter = Meter(url)
        begun, used = time.perf_counter(), meter.read()
        worker.loud("a benchmark")
        while worker.acknowledged < jobs:  # noqa: ASYNC110 - what is measured must not be told to
            await asyncio.sleep(0.002)
        drain = Drain(jobs / (time.perf_counter() - begun), (meter.read() - used) * 1e6 / jobs)
        worker.stop()
        await running
        return drain


class Meter:
    """Seconds of processor time: of this process, and of a whole PostgreSQL server on this machine."""

    def __init__(self, url: str) -> None:
        self._server: int | None = None
        if not url.startswith("sqlite"):
            with psycopg.connect(url) as session:
                self._server = _stat(session.info.backend_pid)[_PARENT]

    def read(self) -> float:
        """The time up to now."""
        return time.process_time() + (0 if self._server is None else _ticks(self._server) / _TICKS)


def _ticks(server: int) -> int:
    """The ticks of the processes of a server, and of those that it had and that have ended."""
    used = sum(_stat(server)[_OWN_AND_ENDED])
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError):
                stat = _stat(int(entry.name))
                used += sum(stat[_OWN]) if stat[_PARENT] == server else 0
    return used


def _stat(pid: int) -> list[int]:
    """The numbers of /proc/<pid>/stat behind the name and the state of the process."""
    return [int(text) for text in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1:]]


def main() -> None:
    """Print the figures of each engine."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--engine", choices=["sqlite", "postgres"], action="append")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    given = parser.parse_args()
    chosen = given.engine or ["sqlite", "postgres"]
    if "sqlite" in chosen:
        with tempfile.TemporaryDirectory(prefix="events-") as folder:
            _show(Engine.SQLITE, folder, given.rounds)
    if "postgres" in chosen:
        with postgres_server() as server:
            _show(Engine.POSTGRES, server, given.rounds)


def _show(engine: Engine, server: str, rounds: int) -> None:
    cost = events_cost(engine, server, rounds=rounds)
    for name, drain in (("with the log", cost.logged), ("without", cost.plain)):
        print(f"{engine} {name}: {drain.per_second:,.0f} jobs/s, {drain.cpu_micros:.2f} µs of processor time per job")
    print(f"{engine} ratios: speed {cost.speed:.3f}, processor time {cost.cpu:.3f}, least {cost.least:.3f}")
    print(f"{engine} space: {cost.event_bytes:.0f} bytes per event", flush=True)


if __name__ == "__main__":
    main()

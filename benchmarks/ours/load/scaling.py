"""What a second worker on the same machine adds, by how much each job has to do.

`python -m benchmarks.ours.load.scaling [--rounds N]` drains jobs that keep a processor busy for a while, on PostgreSQL,
with one worker and with two in turns. Workers and server share the processors: a second worker can add only what the
first and its server leave.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import tempfile
import time
from functools import partial
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.harness.contest import run
from benchmarks.harness.contestant import Plan
from benchmarks.harness.ledger import WorkerLedger
from benchmarks.harness.measure import Metric
from benchmarks.harness.phases import Phases
from benchmarks.harness.postgres import postgres_server
from benchmarks.harness.workers import Crew
from benchmarks.ours.contestant import declare
from benchmarks.ours.on_postgres import PerdureOnPostgres
from perdure import App, Job

MODULE = "benchmarks.ours.load.scaling"
LOOPS = "PERDURE_BENCH_LOOPS"
WORK = (0, 10, 25, 50, 100)  # microseconds of a processor for each job
JOBS = 120_000


class BusyPerdure(PerdureOnPostgres):
    """perdure with jobs that have something to do."""

    plan = Plan(drain_jobs=JOBS)

    def declare(self, app: App, ledger: WorkerLedger | None) -> Job[[int, int], None]:
        """Declare the job that records its start, and then counts as far as it was told."""
        loops = int(os.environ[LOOPS])

        def start_and_count(index: int, sent_ns: int) -> None:
            if ledger is not None:
                ledger.start(index, sent_ns)
            _count(loops)

        return declare(app, start_and_count)


def _count(loops: int) -> None:
    for _ in range(loops):
        pass


def loops_per_microsecond() -> float:
    """How far this machine counts in a microsecond, at its best."""
    loops, best = 100_000, float("inf")
    for _ in range(20):
        begun = time.perf_counter()
        _count(loops)
        best = min(best, time.perf_counter() - begun)
    return loops / (best * 1e6)


def rates(server: str, rounds: int) -> tuple[float, float]:
    """Jobs per second of one worker and of two, each the median of some rounds taken in turns."""
    with tempfile.TemporaryDirectory(prefix="scaling-") as folder:
        contestant = BusyPerdure()
        phases = Phases(contestant, contestant.plan, server, Path(folder), partial(Crew, MODULE))
        one, two = [], []
        for _ in range(rounds):
            one.append(asyncio.run(_drain(phases, Metric.DRAIN_ONE, Metric.BUSY_ONE, 1)))
            two.append(asyncio.run(_drain(phases, Metric.DRAIN_TWO, Metric.BUSY_TWO, 2)))
    return statistics.median(one), statistics.median(two)


async def _drain(phases: Phases, metric: Metric, busy: Metric, workers: int) -> float:
    taken = await phases.fill_and_drain(metric, busy, workers)
    return next(measurement.value for measurement in taken if measurement.metric is metric)


def main() -> None:
    """Measure each amount of work, and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    pace = loops_per_microsecond()
    table = Table("work for each job", "one worker", "two workers", "two against one")
    with postgres_server() as server:
        for work in WORK:
            os.environ[LOOPS] = str(round(work * pace))
            one, two = rates(server, options.rounds)
            table.add_row(f"{work} µs", f"{one:,.0f}/s", f"{two:,.0f}/s", f"{two / one:.2f} ×")
    Console().print(table)


if __name__ == "__main__":
    if LOOPS in os.environ:
        run(BusyPerdure(), MODULE)
    else:
        main()

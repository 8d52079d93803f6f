"""The desk beside a million jobs and a worker at full speed: pages, memory, drain, first paint, the command line.

`python -m benchmarks.desk [--engine sqlite|postgres] [--jobs 1000000] [--pages WORD …] [--rounds N] [--json FILE]`.
`--url` measures a database that was filled before. Each question is asked in every round, and each round has another
order: a page that comes right behind another finds the answers that pages share for a moment. Wall-clock times include
what other programs on the machine take.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.table import Table

from benchmarks.desk.browser import TABS, Browser, Tab
from benchmarks.desk.filling import fill, names_in
from benchmarks.desk.processes import Process, cold_list, desk_process, draining_worker
from benchmarks.desk.questions import expected_status, questions
from benchmarks.desk.wanted import WANTED, Seen, judge
from benchmarks.harness.contestant import Engine
from benchmarks.harness.databases import new_database, settle
from benchmarks.harness.ledger import Ledger
from benchmarks.harness.measure import percentile
from benchmarks.harness.signals import leave_on_sigterm
from benchmarks.ours.__main__ import server_for
from benchmarks.ours.addresses import address

JOBS: Final = 1_000_000
ROUNDS: Final = 20
DRAINS: Final = 6  # of each sort
DRAIN_SECONDS: Final = 5.0
COLD_STARTS: Final = 5


def main() -> None:
    """Measure, print, and fail if the desk is slower than promised."""
    options = _parser().parse_args()
    leave_on_sigterm()
    chosen = options.engine or ["sqlite", "postgres"]
    seen: dict[str, Seen] = {}
    if options.url:
        engine = Engine.SQLITE if options.url.startswith("sqlite") else Engine.POSTGRES
        seen[engine] = measure(options.url, options.rounds, options.drains, options.pages)
        _show(engine, seen[engine])
    else:
        for engine in (Engine.SQLITE, Engine.POSTGRES):
            if engine.name.lower() in chosen:
                seen[engine] = _filled_and_measured(engine, options)
                _show(engine, seen[engine])
    if options.json:
        figures = {name: one.figures() for name, one in seen.items()}
        options.json.write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")
    sys.exit(0 if all(verdict.kept for one in seen.values() for verdict in judge(one)) else 1)


def measure(url: str, rounds: int, drains: int, pages: list[str]) -> Seen:
    """All figures of a database that is filled."""
    asked = {
        name: path
        for name, path in questions(names_in(url)).items()
        if not pages or any(word in name for word in pages)
    }
    with tempfile.TemporaryDirectory(prefix="desk-") as folder, desk_process(url) as desk:
        browser = Browser(desk.address)
        for name, path in asked.items():  # once before it counts: templates are compiled by the first
            browser.get_well(path, expected_status(name))
        with draining_worker(url, Path(folder)) as ledger:
            begun, used, ran = time.monotonic(), desk.cpu, ledger.started()
            browser = Browser(desk.address)  # the other one was idle while the worker began: the desk has closed it
            times, cpu = _asked(browser, desk, asked, rounds)
            took = time.monotonic() - begun
            busy, drained = (desk.cpu - used) / took, (ledger.started() - ran) / took
            alone, beside, refreshed = _drains(desk, ledger, drains)
            if not min(drained, *alone, *beside):
                raise RuntimeError("the worker ran no job while the desk was measured")
        cold_list(url, Path(folder))  # writes the bytecode
        starts = [cold_list(url, Path(folder)) for _ in range(COLD_STARTS)]
        return Seen(
            times=times,
            cpu=cpu,
            alone=alone,
            beside=beside,
            memory=desk.memory,
            busy=busy,
            drained=drained,
            refreshed=refreshed,
            first_paint=max(Browser(desk.address).first_paint(path) for path in TABS),
            cold=statistics.median(wall for wall, _ in starts),
            cold_cpu=statistics.median(used for _, used in starts),
            load=os.getloadavg()[0],
        )


def _asked(
    browser: Browser, desk: Process, asked: dict[str, str], rounds: int
) -> tuple[dict[str, list[float]], dict[str, list[float]]]:
    """Milliseconds of each answer by the clock on the wall, and of the desk's processor time."""
    times: dict[str, list[float]] = {name: [] for name in asked}
    cpu: dict[str, list[float]] = {name: [] for name in asked}
    for number in range(rounds):
        names = list(asked)
        random.Random(number).shuffle(names)  # noqa: S311 - the same orders in each run
        for name in names:
            used = desk.cpu
            answer = browser.get_well(asked[name], expected_status(name))
            cpu[name].append((desk.cpu - used) * 1_000)
            times[name].append(answer.seconds * 1_000)
    return times, cpu


def _drains(desk: Process, ledger: Ledger, drains: int) -> tuple[list[float], list[float], int]:
    """Jobs per second without and with three tabs, in turns that change sides; how often a tab refreshed itself."""
    refreshed = 0
    rates: dict[bool, list[float]] = {False: [], True: []}
    for number in range(drains):
        for is_open in (False, True) if number % 2 else (True, False):
            with ExitStack() as tabs:
                opened = [tabs.enter_context(Tab(desk.address, path)) for path in (TABS if is_open else ())]
                time.sleep(0.5)
                before, begun = ledger.started(), time.monotonic()
                time.sleep(DRAIN_SECONDS)
                rates[is_open].append((ledger.started() - before) / (time.monotonic() - begun))
                refreshed += sum(tab.refreshed for tab in opened)
    return rates[False], rates[True], refreshed


def _filled_and_measured(engine: Engine, options: argparse.Namespace) -> Seen:
    with server_for(engine) as server, new_database(engine, server) as database:
        took = fill(engine, database, options.jobs)
        settle(engine, database)
        print(f"{engine}: {options.jobs:,} jobs written in {took:.0f} s", flush=True)
        return measure(address(engine, database), options.rounds, options.drains, options.pages)


def _show(engine: Engine, seen: Seen) -> None:
    console = Console(width=None if sys.stdout.isatty() else 110)
    table = Table(str(engine), "p50 ms", "p95 ms", "max ms", "processor ms")
    for name, times in sorted(seen.times.items(), key=lambda item: -percentile(item[1], 0.95)):
        figures = percentile(times, 0.5), percentile(times, 0.95), max(times), percentile(seen.cpu[name], 0.5)
        table.add_row(name, *(f"{value:.1f}" for value in figures))
    console.print(table)
    verdicts = Table(str(engine), "wanted", "seen", "")
    for verdict in judge(seen):
        verdicts.add_row(verdict.what, verdict.wanted, verdict.seen, "kept" if verdict.kept else "BROKEN")
    console.print(verdicts)
    console.print(
        f"while it was asked, the desk used {seen.busy:.0%} of a processor, and the worker ran {seen.drained:,.0f} "
        f"jobs/s; open tabs refreshed {seen.refreshed} times; load average {seen.load:.1f}"
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--engine", choices=["sqlite", "postgres"], action="append")
    parser.add_argument("--jobs", type=int, default=JOBS)
    parser.add_argument("--url", help="a database that was filled before")
    parser.add_argument("--pages", nargs="*", default=[], help="only questions with one of these words in their names")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--drains", type=int, default=DRAINS)
    parser.add_argument("--json", type=Path)
    parser.epilog = "Wanted: " + "; ".join(f"{what} {wanted}" for what, wanted in WANTED.items())
    return parser


if __name__ == "__main__":
    main()

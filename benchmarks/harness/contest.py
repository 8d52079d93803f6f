"""The command line of one contestant: measure it, or be one of its workers.

`python -m benchmarks.peers.<name> SERVER` prints one JSON document on standard output.
`SERVER` is a PostgreSQL URL, a folder for SQLite files, or a Redis URL. The worker form is
for the harness itself.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import tempfile
import threading
import time
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from benchmarks.harness.contestant import Purpose
from benchmarks.harness.ledger import WorkerLedger
from benchmarks.harness.measure import Outcome, medians
from benchmarks.harness.phases import Phases
from benchmarks.harness.workers import Crew

if TYPE_CHECKING:
    from collections.abc import Coroutine
    from typing import Any

    from benchmarks.harness.contestant import Contestant

T = TypeVar("T")


def run(contestant: Contestant, module: str) -> None:
    """Do what the command line asks; `module` is where a worker finds the contestant."""
    arguments = sys.argv[1:]
    if arguments[:1] == ["worker"]:
        url, ledger_path, purpose, worker = arguments[1:]
        threading.Thread(target=_end_with_parent, args=(os.getppid(),), daemon=True).start()
        ledger = WorkerLedger(Path(ledger_path), int(worker))
        _run_on_loop(contestant, contestant.work(url, ledger, Purpose(purpose)))
        return
    options = _parser(contestant.name).parse_args(arguments)
    outcome = measure(contestant, module, server=options.server, scale=options.scale, repeats=options.repeats)
    sys.stdout.write(outcome.to_json() + "\n")


def measure(contestant: Contestant, module: str, *, server: str, scale: float = 1.0, repeats: int = 1) -> Outcome:
    """Run every phase `repeats` times and return the median of each figure."""
    plan = contestant.plan.scaled(scale)
    with tempfile.TemporaryDirectory(prefix="contest-") as folder:
        phases = Phases(contestant, plan, server, Path(folder), partial(Crew, module))
        runs = [_run_on_loop(contestant, phases.all()) for _ in range(repeats)]
    return Outcome(
        name=contestant.name,
        engine=contestant.engine,
        version=version(contestant.distribution),
        settings=dict(contestant.settings),
        measurements=medians(runs),
    )


def _run_on_loop(contestant: Contestant, work: Coroutine[Any, Any, T]) -> T:
    if not contestant.uvloop:
        return asyncio.run(work)
    import uvloop  # noqa: PLC0415 - only some environments have it

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(work)


def _end_with_parent(parent: int) -> None:
    """End this worker when the process that measures it is gone."""
    while os.getppid() == parent:
        time.sleep(1.0)
    os._exit(1)


def _parser(name: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=f"Measure {name}.")
    parser.add_argument("server", help="PostgreSQL URL, folder for SQLite files, or Redis URL")
    parser.add_argument("--scale", type=float, default=1.0, help="factor on all job counts")
    parser.add_argument("--repeats", type=int, default=1, help="runs to take the median of")
    return parser

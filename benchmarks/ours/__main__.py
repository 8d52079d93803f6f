"""All that perdure promises about speed, with the ceilings and the rival it is measured against, in one run.

`python -m benchmarks.ours [--engine sqlite|postgres] [--skip flow …] [--json FILE]`. Each line says what was promised,
what was seen, and whether that holds. Ratios count; single figures depend on the machine.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.harness.contestant import Engine
from benchmarks.harness.measure import Metric, Outcome
from benchmarks.harness.postgres import postgres_server
from benchmarks.ours import promises
from benchmarks.ours.flows.chains import chain_seconds
from benchmarks.ours.flows.families import families
from benchmarks.ours.flows.parked import claims_beside_parked, waking
from benchmarks.ours.flows.steps import steps_per_second
from benchmarks.ours.load import flow
from benchmarks.ours.load.budgets import budget_cost
from benchmarks.ours.load.closing import closing
from benchmarks.ours.load.gates import gate_cost
from benchmarks.ours.load.opening import deviation
from benchmarks.ours.load.schedules import tick_cost
from benchmarks.ours.load.singles import share_of_raw
from benchmarks.ours.promised import PROMISED, Verdict

MODULES = {Engine.SQLITE: "benchmarks.ours.on_sqlite", Engine.POSTGRES: "benchmarks.ours.on_postgres"}


def main() -> None:
    """Measure, print, and fail if a promise is broken."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--engine", choices=["sqlite", "postgres"], action="append")
    parser.add_argument(
        "--skip",
        choices=[
            "race",
            "enqueue",
            "claims",
            "threads",
            "flow",
            "footprint",
            "closing",
            "opening",
            "schedules",
            "families",
            "chains",
            "steps",
            "gates",
            "budgets",
            "parked",
        ],
        nargs="*",
        default=[],
    )
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    chosen = options.engine or ["sqlite", "postgres"]
    figures: dict[str, float] = {}
    if "footprint" not in options.skip:
        figures |= {f"footprint {name}": value for name, value in promises.footprint().items()}
    for engine in (Engine.SQLITE, Engine.POSTGRES):
        if engine.name.lower() in chosen:
            with server_for(engine) as server:
                measured = measure(engine, server, options.skip, options.repeats)
            figures |= {f"{engine} {name}": value for name, value in measured.items()}
    verdicts = [verdict for promise in PROMISED if (verdict := promise.judge(figures)) is not None]
    show(verdicts)
    tell_of_processors(figures)
    if options.json:
        options.json.write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")
    sys.exit(0 if all(verdict.kept for verdict in verdicts) else 1)


@contextmanager
def server_for(engine: Engine) -> Iterator[str]:
    """A PostgreSQL server, or a folder for SQLite files, on the same disk."""
    if engine is Engine.POSTGRES:
        with postgres_server() as url:
            yield url
    else:
        with tempfile.TemporaryDirectory(prefix="ours-") as folder:
            yield folder


def measure(  # noqa: C901, PLR0912 - one branch for each figure
    engine: Engine, server: str, skip: list[str], repeats: int
) -> dict[str, float]:
    """Every figure of one engine."""
    figures: dict[str, float] = {}
    if "race" not in skip:
        figures |= race(engine, server, repeats)
    if "enqueue" not in skip:
        figures["single share"] = share_of_raw(engine, server)
        figures["concurrent enqueues"] = median(lambda: promises.concurrent_enqueues(engine, server), repeats)
    if "threads" not in skip:
        figures["drain in threads"] = median(lambda: promises.thread_drain(engine, server), repeats)
    if "claims" not in skip:
        figures["claim ratio"] = promises.claims_beside_history(engine, server)
    if "closing" not in skip:
        figures["closing"] = median(lambda: closing(engine, server), repeats)
    if "opening" not in skip:
        figures["opening"] = deviation(engine, server) * 100
    if "schedules" not in skip:
        figures |= {f"tick {name}": value for name, value in tick_cost(engine, server).items()}
    if "steps" not in skip:
        figures["steps"] = median(lambda: steps_per_second(engine, server), repeats)
    if "gates" not in skip:
        figures |= {f"gates {name}": value for name, value in gate_cost(engine, server).items()}
    if "budgets" not in skip:
        figures |= {f"budget {name}": value for name, value in budget_cost(engine, server).items()}
    if "parked" not in skip:
        figures |= {f"parked {name}": value for name, value in waking(engine, server).items()}
        figures["parked claim ratio"] = claims_beside_parked(engine, server)
    if "families" not in skip:
        figures |= {f"family {name}": value for name, value in families(engine, server).items()}
    if "chains" not in skip:
        figures["chain"] = chain_seconds(engine, server)
    if "flow" not in skip:
        figures["flow ratio"] = median(lambda: flow.steadiness(engine, server), repeats)
        if engine is Engine.POSTGRES:
            held = median(lambda: flow.steadiness(engine, server, held_snapshot=True), repeats)
            figures["flow with held snapshot ratio"] = held
    return figures


def race(engine: Engine, server: str, repeats: int) -> dict[str, float]:
    """The phases that the peers run too."""
    command = [sys.executable, "-m", MODULES[engine], server, "--repeats", str(repeats)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    outcome = Outcome.from_json(done.stdout)
    return {str(measurement.metric): measurement.value for measurement in outcome.measurements}


def median(take: Callable[[], float], repeats: int) -> float:
    """The median of some runs."""
    return sorted(take() for _ in range(repeats))[repeats // 2]


def show(verdicts: list[Verdict]) -> None:
    """Print promise by promise."""
    table = Table("engine", "promise", "wanted", "seen", "")
    for verdict in verdicts:
        table.add_row(verdict.engine, verdict.what, verdict.wanted, verdict.seen, "kept" if verdict.kept else "BROKEN")
    Console().print(table)


def tell_of_processors(figures: dict[str, float]) -> None:
    """Print what one worker and two leave of the machine: no second one can be faster than what is left for it."""
    for engine in Engine:
        shares = [figures.get(f"{engine} {metric}") for metric in (Metric.BUSY_ONE, Metric.BUSY_TWO)]
        if all(shares):
            one, two = (f"{share:.0%}" for share in shares if share)
            Console().print(f"{engine}: one worker and its database keep {one} of the processors busy, two keep {two}")


if __name__ == "__main__":
    main()

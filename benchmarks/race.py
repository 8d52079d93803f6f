"""perdure and its peers on the same engine, in the same run: `python -m benchmarks.race [--only NAME …]`.

perdure is measured before and after the peers of its engine and the slower of the two counts, so that a machine that
gets busier in between favours nobody. Exits with 1 if a peer drains faster, or pgqueuer at more than 1/1.3 of our rate.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

from benchmarks.harness.contestant import Engine
from benchmarks.harness.measure import Metric, Outcome
from benchmarks.harness.report import markdown, ratios, show
from benchmarks.harness.signals import leave_on_sigterm
from benchmarks.peers.roster import PEERS, Servers, measure_peer, servers

OURS = {Engine.POSTGRES: "benchmarks.ours.on_postgres", Engine.SQLITE: "benchmarks.ours.on_sqlite"}
AHEAD = {"pgqueuer": 1.3}


def main() -> None:
    """Run the race, print the table, and say whether we are ahead."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.race", description=__doc__)
    parser.add_argument("--only", nargs="+", choices=list(PEERS), metavar="NAME", help=", ".join(PEERS))
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures here")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write the table here")
    options = parser.parse_args()
    leave_on_sigterm()
    outcomes = run(options.only or list(PEERS))
    show(outcomes)
    if options.json:
        options.json.write_text(json.dumps([asdict(outcome) for outcome in outcomes], indent=2) + "\n")
    if options.markdown:
        options.markdown.write_text(markdown(outcomes))
    sys.exit(0 if is_ahead(outcomes) else 1)


def run(names: list[str]) -> list[Outcome]:
    """Measure us and the peers named, engine by engine; peers on another engine come last."""
    outcomes: list[Outcome] = []
    with servers() as running:
        for engine, module in OURS.items():
            rivals = [name for name in names if PEERS[name].engine is engine]
            if not rivals:
                continue
            print(f"measuring perdure on {engine} and {', '.join(rivals)} ...", flush=True)
            before = measure_ours(module, running, engine)
            measured = [measure_peer(name, running) for name in rivals]
            after = measure_ours(module, running, engine)
            outcomes += [slower(before, after), *measured]
        outcomes += [measure_peer(name, running) for name in names if PEERS[name].engine not in OURS]
    return outcomes


def measure_ours(module: str, running: Servers, engine: Engine) -> Outcome:
    """One run of perdure, in a process of its own as the peers'."""
    command = [sys.executable, "-m", module, running.url(engine)]
    return Outcome.from_json(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)


def slower(one: Outcome, other: Outcome) -> Outcome:
    """The run with the lower rate of draining."""
    return min(one, other, key=lambda outcome: outcome.value(Metric.DRAIN_ONE) or 0.0)


def is_ahead(outcomes: list[Outcome]) -> bool:
    """Whether perdure drains faster than each peer on the same engine, and by how much; printed too."""
    ahead = True
    for ours in (outcome for outcome in outcomes if outcome.name == "perdure"):
        for name, factor in ratios(ours, outcomes, Metric.DRAIN_ONE).items():
            wanted = AHEAD.get(name, 1.0)
            print(f"{ours.engine}: {factor:.1f} × {name} (wanted: {wanted:.1f} ×)")
            ahead = ahead and factor >= wanted
    return ahead


if __name__ == "__main__":
    main()

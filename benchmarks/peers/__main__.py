"""Measure the peers: `python -m benchmarks.peers [--only NAME ...] [--json FILE]`."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from pathlib import Path

from benchmarks.harness.report import markdown, show
from benchmarks.harness.signals import leave_on_sigterm
from benchmarks.peers.roster import PEERS, measure_peers


def main() -> None:
    """Measure the peers that the command line names, and print a table."""
    options = _parser().parse_args()
    leave_on_sigterm()
    outcomes = measure_peers(options.only or list(PEERS), scale=options.scale, repeats=options.repeats, tell=print)
    show(outcomes)
    if options.json:
        options.json.write_text(json.dumps([asdict(outcome) for outcome in outcomes], indent=2) + "\n")
    if options.markdown:
        options.markdown.write_text(markdown(outcomes))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.peers", description=__doc__)
    parser.add_argument("--only", nargs="+", choices=list(PEERS), metavar="NAME", help=", ".join(PEERS))
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures here")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write the table here")
    parser.add_argument("--scale", type=float, default=1.0, help="factor on all job counts (1)")
    parser.add_argument("--repeats", type=int, default=1, help="runs to take the median of (1)")
    return parser


if __name__ == "__main__":
    main()

"""perdure on SQLite."""

from __future__ import annotations

from typing import ClassVar

from benchmarks.harness.contest import run
from benchmarks.harness.contestant import Engine
from benchmarks.ours.contestant import Perdure


class PerdureOnSqlite(Perdure):
    """Drive perdure on SQLite, synchronous=FULL."""

    engine: ClassVar[Engine] = Engine.SQLITE


if __name__ == "__main__":
    run(PerdureOnSqlite(), "benchmarks.ours.on_sqlite")

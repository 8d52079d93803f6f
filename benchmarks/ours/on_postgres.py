"""perdure on PostgreSQL."""

from __future__ import annotations

from typing import ClassVar

from benchmarks.harness.contest import run
from benchmarks.harness.contestant import Engine
from benchmarks.ours.contestant import Perdure


class PerdureOnPostgres(Perdure):
    """Drive perdure on PostgreSQL."""

    engine: ClassVar[Engine] = Engine.POSTGRES


if __name__ == "__main__":
    run(PerdureOnPostgres(), "benchmarks.ours.on_postgres")

"""perdure on PostgreSQL."""

from __future__ import annotations

from typing import ClassVar

from benchmarks.harness.contest import run
from benchmarks.harness.contestant import Engine
from benchmarks.harness.databases import count_sql
from benchmarks.ours.contestant import UNFINISHED, Perdure


class PerdureOnPostgres(Perdure):
    """Drive perdure on PostgreSQL."""

    engine: ClassVar[Engine] = Engine.POSTGRES

    async def unfinished(self, url: str) -> int:
        """Whether any job is left that is not final: 1 or 0."""
        return count_sql(url, UNFINISHED.format("perdure."))


if __name__ == "__main__":
    run(PerdureOnPostgres(), "benchmarks.ours.on_postgres")

"""perdure on SQLite."""

from __future__ import annotations

from typing import ClassVar

import apsw

from benchmarks.harness.contest import run
from benchmarks.harness.contestant import Engine
from benchmarks.ours.contestant import UNFINISHED, Perdure


class PerdureOnSqlite(Perdure):
    """Drive perdure on SQLite, synchronous=FULL."""

    engine: ClassVar[Engine] = Engine.SQLITE

    async def unfinished(self, url: str) -> int:
        """Whether any job is left that is not final: 1 or 0."""
        connection = apsw.Connection(url)
        try:
            return int(connection.execute(UNFINISHED.format("perdure_")).get)
        finally:
            connection.close()


if __name__ == "__main__":
    run(PerdureOnSqlite(), "benchmarks.ours.on_sqlite")

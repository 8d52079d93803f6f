"""perdure's URLs for the harness's databases."""

from __future__ import annotations

from benchmarks.harness.contestant import Engine


def address(engine: Engine, database: str) -> str:
    """The harness names a SQLite database by its path and a PostgreSQL one by its URL."""
    return f"sqlite:///{database}" if engine is Engine.SQLITE else database

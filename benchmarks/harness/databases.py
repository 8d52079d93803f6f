"""An empty database for each phase, so that no phase inherits the bloat of another."""

from __future__ import annotations

import itertools
import shutil
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from benchmarks.harness.contestant import Engine

if TYPE_CHECKING:
    from collections.abc import Iterator

_numbers = itertools.count(1)


@contextmanager
def new_database(engine: Engine, server: str) -> Iterator[str]:
    """Yield the URL of an empty database and remove it afterwards.

    `server` is a PostgreSQL URL, a folder for SQLite files, or a Redis URL.
    """
    make = {
        Engine.POSTGRES: _new_postgres_database,
        Engine.SQLITE: _new_sqlite_file,
        Engine.REDIS: _emptied_redis,
    }[engine]
    with make(server) as url:
        yield url


def settle(engine: Engine, url: str) -> None:
    """Bring a database that was just filled to the state of one that has been up for a while.

    PostgreSQL gets the statistics that autovacuum would soon gather, and a checkpoint, so that
    neither falls by chance into one contestant's measurement.
    """
    if engine is Engine.POSTGRES:
        run_sql(url, "VACUUM (ANALYZE)", "CHECKPOINT")


def run_sql(url: str, *statements: str) -> None:
    """Run statements on PostgreSQL, each in a transaction of its own."""
    import psycopg  # noqa: PLC0415 - absent in the environments of peers that use SQLite

    with psycopg.connect(url, autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement.encode())


def count_sql(url: str, query: str) -> int:
    """Return the single number that a PostgreSQL query answers with."""
    import psycopg  # noqa: PLC0415 - absent in the environments of peers that use SQLite

    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("SET statement_timeout = '60s'")
        row = connection.execute(query.encode()).fetchone()
    return int(row[0]) if row else 0


@contextmanager
def _new_postgres_database(server: str) -> Iterator[str]:
    name = f"contest_{next(_numbers)}"
    run_sql(server, f"DROP DATABASE IF EXISTS {name} WITH (FORCE)", f"CREATE DATABASE {name}")
    try:
        yield _with_database(server, name)
    finally:
        run_sql(server, f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")


def _with_database(server: str, name: str) -> str:
    parts = urlsplit(server)
    return f"{parts.scheme}://{parts.netloc}/{name}?{parts.query}"


@contextmanager
def _new_sqlite_file(server: str) -> Iterator[str]:
    folder = Path(server) / f"contest_{next(_numbers)}"
    folder.mkdir(parents=True)
    try:
        yield str(folder / "jobs.db")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _emptied_redis(server: str) -> Iterator[str]:
    import redis  # type: ignore[import-not-found,unused-ignore]  # noqa: PLC0415 - only some peers have it

    with redis.Redis.from_url(server) as client:
        client.flushall()
    yield server

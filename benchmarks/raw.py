"""How fast the bare databases are here: the ceilings against which job systems are judged.

`python -m benchmarks.raw [--json FILE]` measures, on the disk of the system's temporary
folder, what one connection reaches with a job-sized row: commits of a single row, and rows
in bulk (COPY on PostgreSQL, one transaction of many inserts on SQLite). Both databases are
set to survive a power cut.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import apsw
import psycopg

from benchmarks.harness.contestant import Engine
from benchmarks.harness.databases import new_database
from benchmarks.harness.measure import Measurement, Metric, Outcome, medians
from benchmarks.harness.postgres import SETTINGS, postgres_server
from benchmarks.harness.report import RAW_COLUMNS, show
from benchmarks.harness.signals import leave_on_sigterm

if TYPE_CHECKING:
    from collections.abc import Iterator

SINGLE_ROWS = 4_000
BULK_ROWS = 200_000
NAME = "raw"
POSTGRES_TABLE = """
    CREATE TABLE job (
        id uuid PRIMARY KEY, queue text NOT NULL, kind text NOT NULL, priority int NOT NULL,
        due_at timestamptz NOT NULL, payload jsonb NOT NULL
    )"""
SQLITE_TABLE = """
    CREATE TABLE job (
        id blob PRIMARY KEY, queue text NOT NULL, kind text NOT NULL, priority int NOT NULL,
        due_at text NOT NULL, payload text NOT NULL
    ) STRICT, WITHOUT ROWID"""
SQLITE_INSERT = "INSERT INTO job VALUES (?, ?, ?, ?, ?, ?)"
COLUMNS = ("default", "send_alert", 0, "2030-01-01 00:00:00+00", '{"index": 0, "sent_ns": 0}')

Row = tuple[bytes, str, str, int, str, str]


@contextmanager
def bare_postgres(server: str) -> Iterator[psycopg.Connection]:
    """A new database of the server with one table for job-sized rows, and a connection to it."""
    with new_database(Engine.POSTGRES, server) as url, psycopg.connect(url, autocommit=True) as connection:
        connection.execute(POSTGRES_TABLE)
        yield connection


@contextmanager
def bare_sqlite(folder: str) -> Iterator[apsw.Connection]:
    """The same as a file in a folder."""
    with new_database(Engine.SQLITE, folder) as path:
        connection = apsw.Connection(path)
        connection.pragma("journal_mode", "wal")
        connection.pragma("synchronous", "full")
        connection.execute(SQLITE_TABLE)
        yield connection
        connection.close()


def commit_on_postgres(connection: psycopg.Connection, rows: int) -> None:
    """Commit so many rows, one by one."""
    for key, *columns in _rows(rows):
        connection.execute("INSERT INTO job VALUES (%s, %s, %s, %s, %s, %s)", (key.hex(), *columns))


def commit_on_sqlite(connection: apsw.Connection, rows: int) -> None:
    """Commit so many rows, one by one."""
    for row in _rows(rows):
        connection.execute(SQLITE_INSERT, row)


def measure_postgres(server: str, repeats: int = 1) -> Outcome:
    """Measure PostgreSQL at the URL `server`."""
    with bare_postgres(server) as connection:
        version = connection.info.parameter_status("server_version") or ""
        runs = [_postgres_run(connection) for _ in range(repeats)]
    return Outcome(
        name=NAME,
        engine=Engine.POSTGRES,
        version=version.split()[0],
        settings=dict(SETTINGS),
        measurements=medians(runs),
    )


def measure_sqlite(folder: Path, repeats: int = 1) -> Outcome:
    """Measure SQLite, through apsw, with a file in `folder`."""
    with bare_sqlite(str(folder)) as connection:
        runs = [_sqlite_run(connection) for _ in range(repeats)]
    return Outcome(
        name=NAME,
        engine=Engine.SQLITE,
        version=apsw.sqlite_lib_version(),
        settings={"journal": "WAL", "synchronous": "FULL"},
        measurements=medians(runs),
    )


def _postgres_run(connection: psycopg.Connection) -> list[Measurement]:
    begun = time.monotonic()
    commit_on_postgres(connection, SINGLE_ROWS)
    singles = _rate(Metric.SINGLE_COMMITS, SINGLE_ROWS, begun)
    rows = [(key.hex(), *columns) for key, *columns in _rows(BULK_ROWS)]
    begun = time.monotonic()
    with connection.cursor() as cursor, cursor.copy("COPY job FROM STDIN") as copy:
        for row in rows:
            copy.write_row(row)
    return [singles, _rate(Metric.BULK_ROWS, BULK_ROWS, begun)]


def _sqlite_run(connection: apsw.Connection) -> list[Measurement]:
    begun = time.monotonic()
    commit_on_sqlite(connection, SINGLE_ROWS)
    singles = _rate(Metric.SINGLE_COMMITS, SINGLE_ROWS, begun)
    rows = list(_rows(BULK_ROWS))
    begun = time.monotonic()
    with connection:
        connection.executemany(SQLITE_INSERT, rows)
    return [singles, _rate(Metric.BULK_ROWS, BULK_ROWS, begun)]


def _rows(count: int) -> Iterator[Row]:
    """Yield job-sized rows whose keys grow with time, as those of a queue do."""
    base = time.monotonic_ns().to_bytes(8, "big")
    return ((base + index.to_bytes(4, "big") + os.urandom(4), *COLUMNS) for index in range(count))


def _rate(metric: Metric, rows: int, begun: float) -> Measurement:
    seconds = time.monotonic() - begun
    settings = {"rows": str(rows), "seconds": f"{seconds:.2f}"}
    return Measurement(name=NAME, metric=metric, value=rows / seconds, unit="rows/s", settings=settings)


def main() -> None:
    """Measure both databases and print a table."""
    parser = argparse.ArgumentParser(description="Measure the bare databases.")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures here as well")
    parser.add_argument("--repeats", type=int, default=3, help="runs to take the median of")
    options = parser.parse_args()
    leave_on_sigterm()
    with postgres_server() as server, tempfile.TemporaryDirectory(prefix="raw-") as folder:
        outcomes = [measure_postgres(server, options.repeats), measure_sqlite(Path(folder), options.repeats)]
    show(outcomes, RAW_COLUMNS)
    if options.json:
        options.json.write_text(json.dumps([asdict(outcome) for outcome in outcomes], indent=2) + "\n")


if __name__ == "__main__":
    main()

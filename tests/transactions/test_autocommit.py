"""On a connection that commits every statement by itself, an enqueue is a transaction of its own."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path
from typing import Any

import apsw
import asyncpg
import psycopg
import pytest
from sqlalchemy import create_engine
from tests.support.callers import sqlalchemy_url
from tests.support.databases.behind import query, with_option

from perdure import App, DuplicateJobError, Job, OnConflict, Unique

REJECTING = Unique(by=("name",), on_conflict=OnConflict.REJECT)
SCHEMA = "autocommitted"


def greet(name: str) -> None:
    """Say hello."""


@contextmanager
def autocommitting(library: str, address: str) -> Iterator[Any]:
    """A blocking connection of this library, in autocommit."""
    opened: AbstractContextManager[Any]
    if library == "sqlite3":
        opened = closing(sqlite3.connect(address, isolation_level=None))
    elif library == "apsw":
        opened = closing(apsw.Connection(address))
    elif library == "psycopg":
        opened = psycopg.connect(address, autocommit=True)
    elif library == "psycopg pipeline":
        opened = piped(address)
    else:
        driver = library.partition(" ")[2]
        engine = create_engine(sqlalchemy_url(address, driver), isolation_level="AUTOCOMMIT")
        opened = engine.connect()
    with opened as connection:
        yield connection
    if library.startswith("sqlalchemy"):
        engine.dispose()


@contextmanager
def piped(address: str) -> Iterator[Any]:
    """A connection in a pipeline, whose last answer has not come yet."""
    with psycopg.connect(address, autocommit=True) as connection, connection.pipeline():
        connection.execute("SELECT 1")
        yield connection


@pytest.fixture
def postgres(postgres_url: str) -> Iterator[str]:
    yield postgres_url
    query(postgres_url, f"DROP SCHEMA IF EXISTS {SCHEMA} CASCADE")


@pytest.mark.parametrize(
    "library",
    [
        *("psycopg", "psycopg pipeline", "sqlalchemy postgresql+psycopg"),
        *("apsw", "sqlite3", "sqlalchemy sqlite+pysqlite"),
    ],
)
def test_it_is_stored_at_once_all_or_nothing(library: str, postgres: str, tmp_path: Path) -> None:
    if "postgres" in library or "psycopg" in library:
        address, url = postgres, with_option(postgres, "schema", SCHEMA)
    else:
        address = str(tmp_path / "jobs.db")
        url = f"sqlite:///{address}?driver={'apsw' if library == 'apsw' else 'sqlite3'}"
    app = App(url)
    hello: Job[[str], None] = app.job(name="greet")(greet)
    app.enqueue_many_sync([])  # migrates
    with autocommitting(library, address) as connection:
        assert hello.using(connection=connection, unique=REJECTING).enqueue_sync("Ada").is_new
    with autocommitting(library, address) as connection:
        calls = [hello.call("Grace"), hello.using(unique=REJECTING).call("Ada")]
        with pytest.raises(DuplicateJobError):
            app.enqueue_many_sync(calls, connection=connection)
        assert hello.using(connection=connection).enqueue_sync("Barbara").is_new
    receipts = app.enqueue_many_sync([hello.using(unique=Unique(by=("name",))).call("Ada")])
    assert not receipts[0].is_new
    app.close_sync()
    counted = "SELECT count(*) FROM job" if address == postgres else "SELECT count(*) FROM perdure_job"
    if library.startswith("sqlalchemy sqlite") or library == "sqlite3":
        with closing(sqlite3.connect(address)) as look:
            assert look.execute(counted).fetchone() == (2,)
    else:
        assert query(url, counted) == [(2,)]


async def test_asyncpg_outside_a_transaction(postgres: str) -> None:
    async with App(with_option(postgres, "schema", SCHEMA)) as app:
        hello: Job[[str], None] = app.job(name="greet")(greet)
        connection = await asyncpg.connect(postgres)
        handle = await hello.using(connection=connection, unique=REJECTING).enqueue("Ada")
        with pytest.raises(DuplicateJobError):
            await hello.using(connection=connection, unique=REJECTING).enqueue("Ada")
        assert not connection.is_in_transaction()
        await connection.close()
        assert (await handle.view()).id == handle.id

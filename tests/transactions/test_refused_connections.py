"""A connection that would not do what its owner means is refused, by name, with what to do."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiosqlite
import apsw
import asyncpg
import psycopg
import pytest
from sqlalchemy import create_engine
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from tests.support.callers import sqlalchemy_url
from tests.support.databases.behind import with_option

from perdure import App, ArgumentError, Job, SchemaError


def greet(name: str) -> None:
    """Say hello."""


def greeting(url: str) -> Job[[str], None]:
    return App(url).job(name="greet")(greet)


@pytest.fixture
async def asyncpg_connection(postgres_url: str) -> AsyncIterator[Any]:
    connection = await asyncpg.connect(postgres_url)
    yield connection
    await connection.close()


async def test_postgres_connections_are_refused_by_an_app_on_sqlite(
    postgres_url: str, asyncpg_connection: Any, tmp_path: Path
) -> None:
    greet = greeting(f"sqlite:///{tmp_path / 'jobs.db'}")
    with psycopg.connect(postgres_url) as connection, pytest.raises(ArgumentError, match="leads to PostgreSQL"):
        greet.using(connection=connection).enqueue_sync("Ada")
    with pytest.raises(
        ArgumentError, match=r"leads to PostgreSQL, and this app's jobs are in the SQLite file .*jobs.db"
    ):
        await greet.using(connection=asyncpg_connection).enqueue("Ada")


def test_sqlite_connections_are_refused_by_an_app_on_postgres(postgres_url: str, tmp_path: Path) -> None:
    greet = greeting(postgres_url)
    for connection in (sqlite3.connect(tmp_path / "one.db"), apsw.Connection(str(tmp_path / "two.db"))):
        with pytest.raises(ArgumentError, match="leads to SQLite, and this app's jobs are in PostgreSQL"):
            greet.using(connection=connection).enqueue_sync("Ada")
        connection.close()


@pytest.mark.parametrize("driver", ["apsw", "sqlite3"])
def test_the_other_sqlite_library_is_refused_with_the_reason(driver: str, tmp_path: Path) -> None:
    path = str(tmp_path / "jobs.db")
    greet = greeting(f"sqlite:///{path}?driver={driver}")
    other: Any = sqlite3.connect(path) if driver == "apsw" else apsw.Connection(path)
    with pytest.raises(ArgumentError, match="two SQLite libraries on one file in one process break its locks") as told:
        greet.using(connection=other).enqueue_sync("Ada")
    assert f"driver={'sqlite3' if driver == 'apsw' else 'apsw'}" in str(told.value)
    other.close()


async def test_sqlalchemy_on_sqlite_needs_the_standard_library_driver(tmp_path: Path) -> None:
    path = str(tmp_path / "jobs.db")
    greet = greeting(f"sqlite:///{path}")
    engine = create_async_engine(sqlalchemy_url(path, "sqlite+aiosqlite"))
    async with AsyncSession(engine) as session:
        with pytest.raises(ArgumentError, match=r"add driver=sqlite3 to the app's URL"):
            await greet.using(connection=session).enqueue("Ada")
    await engine.dispose()


@pytest.mark.parametrize("other", ["other.db", ":memory:"])
def test_another_file_is_refused(other: str, tmp_path: Path) -> None:
    greet = greeting(f"sqlite:///{tmp_path / 'jobs.db'}?driver=sqlite3")
    connection = sqlite3.connect(other if other == ":memory:" else tmp_path / other)
    with pytest.raises(ArgumentError, match=r"leads to .*(other\.db|in memory), and this app's jobs are in .*jobs\.db"):
        greet.using(connection=connection).enqueue_sync("Ada")
    connection.close()


def test_the_same_file_by_another_name_is_the_same_file(tmp_path: Path) -> None:
    path = tmp_path / "jobs.db"
    app = App(f"sqlite:///{path}?driver=sqlite3")
    greet = app.job(name="greet")(_greet)
    app.enqueue_many_sync([])  # migrates
    (tmp_path / "link.db").symlink_to(path)
    with sqlite3.connect(tmp_path / "link.db") as connection:
        assert greet.using(connection=connection).enqueue_sync("Ada").is_new
    connection.close()
    app.close_sync()


async def test_async_connections_are_refused_where_nothing_can_wait(
    postgres_url: str, asyncpg_connection: Any, tmp_path: Path
) -> None:
    on_postgres = greeting(postgres_url)
    engine = create_async_engine(sqlalchemy_url(postgres_url, "postgresql+asyncpg"))
    async with (
        await psycopg.AsyncConnection.connect(postgres_url) as psycopg_connection,
        AsyncSession(engine) as session,
        aiosqlite.connect(tmp_path / "jobs.db") as sqlite_connection,
    ):
        for connection in (psycopg_connection, asyncpg_connection, session):
            with pytest.raises(ArgumentError, match="connection is asynchronous"):
                on_postgres.using(connection=connection).enqueue_sync("Ada")
        on_sqlite = greeting(f"sqlite:///{tmp_path / 'jobs.db'}?driver=sqlite3")
        with pytest.raises(ArgumentError, match=r"await enqueue\(...\) instead"):
            on_sqlite.using(connection=sqlite_connection).enqueue_sync("Ada")
    await engine.dispose()


async def test_what_is_no_connection_is_refused(postgres_url: str) -> None:
    greet = greeting(postgres_url)
    engine = create_engine(sqlalchemy_url(postgres_url, "postgresql+psycopg"))
    with pytest.raises(ArgumentError, match=r"where connections come from \(sqlalchemy.*Engine\): pass one of"):
        greet.using(connection=engine).enqueue_sync("Ada")
    engine.dispose()
    async with asyncpg.create_pool(postgres_url, min_size=1, max_size=1) as pool:
        with pytest.raises(ArgumentError, match=r"where connections come from \(asyncpg.pool.Pool\)"):
            await greet.using(connection=pool).enqueue("Ada")
    with psycopg.connect(postgres_url) as connection, pytest.raises(ArgumentError, match="an open connection"):
        greet.using(connection=connection.cursor()).enqueue_sync("Ada")
    with pytest.raises(ArgumentError, match=r"connection is a builtins.str: hand over .* of psycopg 3, asyncpg"):
        greet.using(connection="postgresql://").enqueue_sync("Ada")


def test_a_connection_belongs_to_the_batch_and_not_to_a_call(postgres_url: str) -> None:
    greet = greeting(postgres_url)
    with psycopg.connect(postgres_url) as connection, pytest.raises(ArgumentError, match="enqueue_many"):
        greet.using(connection=connection).call("Ada")


def test_missing_tables_are_reported_and_leave_the_transaction_usable(postgres_url: str, tmp_path: Path) -> None:
    on_postgres = greeting(with_option(postgres_url, "schema", "never_made"))
    with psycopg.connect(postgres_url) as connection:
        with pytest.raises(SchemaError, match="perdure migrate"):
            on_postgres.using(connection=connection).enqueue_sync("Ada")
        assert connection.execute("SELECT 1").fetchone() == (1,)
    path = tmp_path / "jobs.db"
    for driver, connect in (("sqlite3", sqlite3.connect), ("apsw", lambda path: apsw.Connection(str(path)))):
        on_sqlite = greeting(f"sqlite:///{path}?driver={driver}")
        opened: Any = connect(path)
        opened.execute("BEGIN")
        opened.execute("CREATE TABLE note (text)")
        with pytest.raises(SchemaError, match="perdure migrate"):
            on_sqlite.using(connection=opened).enqueue_sync("Ada")
        assert opened.execute("SELECT count(*) FROM note").fetchone() == (0,)
        opened.execute("ROLLBACK")
        opened.close()


def test_an_app_that_only_enqueues_through_its_own_connection_opens_nothing(tmp_path: Path) -> None:
    path = tmp_path / "jobs.db"
    greet = greeting(f"sqlite:///{path}?driver=sqlite3")
    assert not path.exists()
    connection = sqlite3.connect(path)
    with pytest.raises(SchemaError):
        greet.using(connection=connection).enqueue_sync("Ada")
    connection.close()
    assert path.stat().st_size == 0


_greet = greet

"""Programs that have a database connection of their own, one for each library that perdure can enqueue through."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Final
from urllib.parse import urlsplit

import aiosqlite
import apsw
import asyncpg
import psycopg
from msgspec import Struct
from psycopg.rows import dict_row
from sqlalchemy import create_engine, text
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import Session, scoped_session, sessionmaker


class Caller(Struct):
    """A connection in a transaction, and the ways in which its owner uses it."""

    connection: Any
    run: Callable[[str], Awaitable[Sequence[Sequence[Any]]]]
    commit: Callable[[], Awaitable[object]]
    rollback: Callable[[], Awaitable[object]]
    blocking: bool = True


Opening = Callable[[str], AbstractAsyncContextManager[Caller]]


def later(act: Callable[[], object]) -> Callable[[], Awaitable[object]]:
    """A blocking act where an async one is wanted."""

    async def acting() -> object:
        return act()

    return acting


@asynccontextmanager
async def with_psycopg(url: str) -> AsyncIterator[Caller]:
    with psycopg.connect(url, row_factory=dict_row) as connection:

        async def run(sql: str) -> Sequence[Sequence[Any]]:
            cursor = connection.execute(sql.encode())
            return [tuple(row.values()) for row in cursor.fetchall()] if cursor.description else []

        yield Caller(connection, run, later(connection.commit), later(connection.rollback))


@asynccontextmanager
async def with_async_psycopg(url: str) -> AsyncIterator[Caller]:
    async with await psycopg.AsyncConnection.connect(url) as connection:

        async def run(sql: str) -> Sequence[Sequence[Any]]:
            cursor = await connection.execute(sql.encode())
            return await cursor.fetchall() if cursor.description else []

        yield Caller(connection, run, connection.commit, connection.rollback, blocking=False)


@asynccontextmanager
async def with_psycopg_pipeline(url: str) -> AsyncIterator[Caller]:
    with psycopg.connect(url) as connection, connection.pipeline() as pipeline:

        async def run(sql: str) -> Sequence[Sequence[Any]]:
            cursor = connection.execute(sql.encode())
            pipeline.sync()
            return cursor.fetchall() if cursor.description else []

        yield Caller(connection, run, later(connection.commit), later(connection.rollback))


@asynccontextmanager
async def with_async_psycopg_pipeline(url: str) -> AsyncIterator[Caller]:
    async with await psycopg.AsyncConnection.connect(url) as connection, connection.pipeline() as pipeline:

        async def run(sql: str) -> Sequence[Sequence[Any]]:
            cursor = await connection.execute(sql.encode())
            await pipeline.sync()
            return await cursor.fetchall() if cursor.description else []

        yield Caller(connection, run, connection.commit, connection.rollback, blocking=False)


@asynccontextmanager
async def with_asyncpg(url: str) -> AsyncIterator[Caller]:
    connection = await asyncpg.connect(url)
    try:
        yield await _begun(connection)
    finally:
        await connection.close()


@asynccontextmanager
async def with_asyncpg_pool(url: str) -> AsyncIterator[Caller]:
    async with asyncpg.create_pool(url, min_size=1, max_size=1) as pool, pool.acquire() as connection:
        yield await _begun(connection)


async def _begun(connection: Any) -> Caller:
    transaction = connection.transaction()
    await transaction.start()
    return Caller(connection, connection.fetch, transaction.commit, transaction.rollback, blocking=False)


@asynccontextmanager
async def with_sqlite3(path: str) -> AsyncIterator[Caller]:
    connection = sqlite3.connect(path)
    connection.row_factory = lambda cursor, row: dict(zip([one[0] for one in cursor.description], row, strict=True))
    try:
        yield Caller(
            connection,
            _blocking(lambda sql: [tuple(row.values()) for row in connection.execute(sql).fetchall()]),
            later(connection.commit),
            later(connection.rollback),
        )
    finally:
        connection.close()


@asynccontextmanager
async def with_sqlite3_begun(path: str) -> AsyncIterator[Caller]:
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("BEGIN")
    try:
        run = _blocking(lambda sql: connection.execute(sql).fetchall())
        yield Caller(connection, run, later(connection.commit), later(connection.rollback))
    finally:
        connection.close()


@asynccontextmanager
async def with_aiosqlite(path: str) -> AsyncIterator[Caller]:
    async with aiosqlite.connect(path) as connection:

        async def run(sql: str) -> Any:
            return await connection.execute_fetchall(sql)

        yield Caller(connection, run, connection.commit, connection.rollback, blocking=False)


@asynccontextmanager
async def with_apsw(path: str) -> AsyncIterator[Caller]:
    connection = apsw.Connection(path)
    connection.set_busy_timeout(5_000)
    connection.row_trace = lambda _cursor, row: [row]
    connection.execute("BEGIN")
    try:
        yield Caller(
            connection,
            _blocking(lambda sql: [row for [row] in connection.execute(sql).fetchall()]),
            later(lambda: connection.execute("COMMIT")),
            later(lambda: connection.execute("ROLLBACK")),
        )
    finally:
        connection.close()


def with_sqlalchemy(driver: str) -> Opening:
    """A Connection of SQLAlchemy on this driver."""

    @asynccontextmanager
    async def opening(url: str) -> AsyncIterator[Caller]:
        engine = create_engine(sqlalchemy_url(url, driver))
        with engine.connect() as connection:
            yield Caller(connection, _running(connection), later(connection.commit), later(connection.rollback))
        engine.dispose()

    return opening


def with_sqlalchemy_session(driver: str, *, scoped: bool = False) -> Opening:
    """A Session of SQLAlchemy on this driver."""

    @asynccontextmanager
    async def opening(url: str) -> AsyncIterator[Caller]:
        engine = create_engine(sqlalchemy_url(url, driver))
        session: Any = scoped_session(sessionmaker(engine)) if scoped else Session(engine)
        yield Caller(session, _running(session), later(session.commit), later(session.rollback))
        session.close()
        engine.dispose()

    return opening


def with_async_sqlalchemy(driver: str) -> Opening:
    """An AsyncConnection of SQLAlchemy on this driver."""

    @asynccontextmanager
    async def opening(url: str) -> AsyncIterator[Caller]:
        engine = create_async_engine(sqlalchemy_url(url, driver))
        async with engine.connect() as connection:
            run = _running_async(connection)
            yield Caller(connection, run, connection.commit, connection.rollback, blocking=False)
        await engine.dispose()

    return opening


def with_async_sqlalchemy_session(driver: str) -> Opening:
    """An AsyncSession of SQLAlchemy on this driver."""

    @asynccontextmanager
    async def opening(url: str) -> AsyncIterator[Caller]:
        engine = create_async_engine(sqlalchemy_url(url, driver))
        async with AsyncSession(engine) as session:
            yield Caller(session, _running_async(session), session.commit, session.rollback, blocking=False)
        await engine.dispose()

    return opening


def sqlalchemy_url(url: str, driver: str) -> str:
    """The address of a database as SQLAlchemy writes it."""
    return f"{driver}:///{url}" if driver.startswith("sqlite") else urlsplit(url)._replace(scheme=driver).geturl()


def _blocking(act: Callable[[str], Any]) -> Callable[[str], Awaitable[Any]]:
    async def run(sql: str) -> Any:
        return act(sql)

    return run


def _running(connection: Any) -> Callable[[str], Awaitable[Any]]:
    async def run(sql: str) -> Any:
        result = connection.execute(text(sql))
        return result.fetchall() if result.returns_rows else []

    return run


def _running_async(connection: Any) -> Callable[[str], Awaitable[Any]]:
    async def run(sql: str) -> Any:
        result = await connection.execute(text(sql))
        return result.fetchall() if result.returns_rows else []

    return run


ON_POSTGRES: Final[dict[str, Opening]] = {
    "psycopg": with_psycopg,
    "psycopg-async": with_async_psycopg,
    "psycopg-pipeline": with_psycopg_pipeline,
    "psycopg-async-pipeline": with_async_psycopg_pipeline,
    "asyncpg": with_asyncpg,
    "asyncpg-pool": with_asyncpg_pool,
    "sqlalchemy": with_sqlalchemy("postgresql+psycopg"),
    "sqlalchemy-session": with_sqlalchemy_session("postgresql+psycopg"),
    "sqlalchemy-async-psycopg": with_async_sqlalchemy("postgresql+psycopg"),
    "sqlalchemy-async-session-psycopg": with_async_sqlalchemy_session("postgresql+psycopg"),
    "sqlalchemy-async-asyncpg": with_async_sqlalchemy("postgresql+asyncpg"),
    "sqlalchemy-async-session-asyncpg": with_async_sqlalchemy_session("postgresql+asyncpg"),
}
ON_SQLITE: Final[dict[str, Opening]] = {
    "apsw": with_apsw,
    "sqlite3": with_sqlite3,
    "sqlite3-begun": with_sqlite3_begun,
    "aiosqlite": with_aiosqlite,
    "sqlalchemy-pysqlite": with_sqlalchemy("sqlite+pysqlite"),
    "sqlalchemy-session-pysqlite": with_sqlalchemy_session("sqlite+pysqlite"),
    "sqlalchemy-scoped-session-pysqlite": with_sqlalchemy_session("sqlite+pysqlite", scoped=True),
    "sqlalchemy-aiosqlite": with_async_sqlalchemy("sqlite+aiosqlite"),
    "sqlalchemy-session-aiosqlite": with_async_sqlalchemy_session("sqlite+aiosqlite"),
}

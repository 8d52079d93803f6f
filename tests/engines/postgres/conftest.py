"""A PostgreSQL store on a schema of its own, and a way to look behind it."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any, TypeVar

import psycopg
import pytest
from tests.support.databases.behind import with_option
from tests.support.databases.postgres import drop_schema

from perdure.engines.postgres.store import PostgresStore

Ask = Callable[..., list[tuple[Any, ...]]]

T = TypeVar("T")


async def eventually(look: Callable[[], Awaitable[T]], patience: float = 10.0) -> T:
    """Look again and again until there is something, and return that."""
    async with asyncio.timeout(patience):
        while True:
            if found := await look():
                return found
            await asyncio.sleep(0.01)


async def until_waiting(ask: Ask, schema: str, sessions: int = 1) -> None:
    """Wait until so many sessions of the store on this schema wait for a lock."""

    async def look() -> bool:
        waiting = ask(
            "SELECT DISTINCT l.pid FROM pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid"
            " WHERE NOT l.granted AND a.application_name = %s",
            schema,
        )
        return len(waiting) >= sessions

    await eventually(look)


@pytest.fixture
def schema(postgres_url: str) -> Iterator[str]:
    """The name of a schema that does not exist yet, and is gone afterwards."""
    name = f"t_{uuid.uuid4().hex[:16]}"
    yield name
    drop_schema(postgres_url, name)


@pytest.fixture
async def pg_store(postgres_url: str, schema: str) -> AsyncIterator[PostgresStore]:
    """A store, open and migrated, on the database's own clock; its connections bear the name of its schema."""
    store = PostgresStore(with_option(postgres_url, "application_name", schema), schema=schema)
    await store.open()
    try:
        await store.migrate()
        yield store
    finally:
        await store.close()


@pytest.fixture
def ask(postgres_url: str, schema: str) -> Iterator[Ask]:
    """Run a statement beside the store, in its schema, and commit."""
    with psycopg.connect(postgres_url, autocommit=True, options=f"-c search_path={schema}") as connection:

        def run(sql: str, *params: object) -> list[tuple[Any, ...]]:
            cursor = connection.execute(sql, params or None)
            return cursor.fetchall() if cursor.description else []

        yield run

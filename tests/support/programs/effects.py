"""Jobs that write through `ctx.transaction()`, and a look at what they wrote."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from datetime import timedelta
from inspect import isawaitable
from typing import Any, Final
from urllib.parse import parse_qsl, urlsplit

from tests.support.databases.behind import query

from perdure import App, Backoff, Retry, WorkerSettings
from perdure.worker.worker import Worker

QUICK: Final = WorkerSettings(
    grace=timedelta(milliseconds=300), poll=timedelta(milliseconds=50), stop_timeout=timedelta(seconds=5)
)
TWICE: Final = Retry(attempts=2, backoff=Backoff.none())
TABLE: Final = "effect_written"


def look(url: str, sql: str) -> list[Any]:
    """Run a statement on the database behind a URL, through the library that its app uses."""
    parts = urlsplit(url)
    if dict(parse_qsl(parts.query)).get("driver") == "sqlite3":
        with closing(sqlite3.connect(parts.path[1:])) as connection, connection:
            return connection.execute(sql).fetchall()
    return query(url, sql)


def make_table(url: str) -> None:
    """The table that handlers write to."""
    look(url, f"CREATE TABLE {TABLE} (text text)")


def written(url: str) -> list[str]:
    """What is there to see for others."""
    return [text for (text,) in look(url, f"SELECT text FROM {TABLE} ORDER BY text")]


def insertion(url: str, text: str) -> str:
    """The statement that writes one row; the handler's connection has the server's own search path."""
    schema = dict(parse_qsl(urlsplit(url).query)).get("schema")
    return f"INSERT INTO {f'{schema}.' if schema else ''}{TABLE} (text) VALUES ('{text}')"


async def write(connection: Any, sql: str) -> None:
    """Write in an async handler, on whatever connection it has."""
    result = connection.execute(sql)
    if isawaitable(result):
        await result


@asynccontextmanager
async def at_work(app: App, settings: WorkerSettings = QUICK) -> AsyncIterator[Worker]:
    """A worker for the time of a block."""
    worker = await app.worker(settings)
    running = asyncio.create_task(worker.run())
    try:
        await asyncio.wait_for(worker.opened.wait(), 20)
        yield worker
    finally:
        worker.stop()
        await asyncio.wait_for(running, 30)

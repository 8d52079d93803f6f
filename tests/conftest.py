"""Every store test runs on both engines, on a database of its own, with time in its hands."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from tests.support.behind import with_option
from tests.support.crew import Crew
from tests.support.databases import SCHEMA, PostgresDatabase, SqliteFiles
from tests.support.postgres import PostgresServer, drop_schema

from perdure.clock import ManualClock
from perdure.engines.connect import store_for
from perdure.storage.port import Store

OpenStore = Callable[[], Awaitable[Store]]


def pytest_configure() -> None:
    """Heed what a shell's background job or `nohup` ignores, so that the processes of tests do: they inherit it."""
    for one in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
        if signal.getsignal(one) is signal.SIG_IGN:
            signal.signal(one, signal.default_int_handler if one is signal.SIGINT else signal.SIG_DFL)


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    """A PostgreSQL server for the whole run: our own, or the one that PERDURE_TEST_POSTGRES names."""
    if given := os.environ.get("PERDURE_TEST_POSTGRES"):
        yield given
        return
    server = PostgresServer()
    try:
        yield server.url
    finally:
        server.discard()


@pytest.fixture(scope="session")
def crew() -> Iterator[Crew]:
    """Four processes that act at the same instant."""
    crew = Crew()
    try:
        yield crew
    finally:
        crew.dismiss()


@pytest.fixture
def clock() -> ManualClock:
    """The time, which only the test moves."""
    return ManualClock()


@pytest.fixture
async def no_free_thread() -> AsyncIterator[None]:
    """All threads of `asyncio.to_thread` are taken by calls that block."""
    over = threading.Event()
    with ThreadPoolExecutor(1) as only:
        asyncio.get_running_loop().set_default_executor(only)
        only.submit(over.wait)
        yield
        over.set()


@pytest.fixture(scope="session")
def sqlite_files(tmp_path_factory: pytest.TempPathFactory) -> SqliteFiles:
    """As many migrated files as are asked for."""
    return SqliteFiles(tmp_path_factory.mktemp("original"))


@pytest.fixture(scope="session")
def postgres_database(postgres_url: str) -> Iterator[PostgresDatabase]:
    """A migrated database for one test after the other."""
    database = PostgresDatabase(postgres_url)
    try:
        yield database
    finally:
        database.drop()


@pytest.fixture(params=["sqlite", "postgres"])
def engine_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """A database that only this test knows, with our tables and nothing in them."""
    if request.param == "sqlite":
        file = tmp_path / "perdure.db"
        request.getfixturevalue("sqlite_files").put(file)
        yield f"sqlite:///{file}"
        return
    with request.getfixturevalue("postgres_database").lent() as url:
        yield with_option(url, "schema", SCHEMA)


@pytest.fixture(params=["sqlite", "postgres"])
def empty_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """A database without tables: a file that is not there yet, or the name of a schema that is gone afterwards."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'perdure.db'}"
        return
    schema = f"t_{uuid.uuid4().hex[:16]}"
    server = request.getfixturevalue("postgres_url")
    yield with_option(server, "schema", schema)
    drop_schema(server, schema)


@pytest.fixture
async def store(engine_url: str, clock: ManualClock) -> AsyncIterator[Store]:
    """A store, open and migrated, whose database asks the test's clock."""
    async with AsyncExitStack() as stack:
        yield await _opened(store_for(engine_url, clock), stack)


@pytest.fixture
async def real_time_store(engine_url: str) -> AsyncIterator[Store]:
    """A store, open and migrated, on the database's own clock."""
    async with AsyncExitStack() as stack:
        yield await _opened(store_for(engine_url), stack)


@pytest.fixture
async def other_store(store: Store) -> AsyncIterator[OpenStore]:
    """Open one more store on the same database and clock, as often as called."""
    async with AsyncExitStack() as stack:

        async def open_sibling() -> Store:
            sibling = store.sibling()
            await sibling.open()
            stack.push_async_callback(sibling.close)
            return sibling

        yield open_sibling


async def _opened(store: Store, stack: AsyncExitStack) -> Store:
    await store.open()
    stack.push_async_callback(store.close)
    await store.migrate()
    return store

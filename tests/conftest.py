"""Every store test runs on both engines, with time in its hands."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack

import pytest
from tests.support.crew import Crew

from perdure.app.connect import store_for
from perdure.clock import ManualClock
from perdure.storage.port import Store

OpenStore = Callable[[], Awaitable[Store]]


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

"""A store that every event loop and thread of a test may use.

A store belongs to the loop that opened it, and tests have many: one per test, one for a web framework's test client, or
none. So a sandbox opens its store once, on a loop in a thread of its own, and returns a `KeptStore` that passes each
call to it. No other loop has anything to close.
"""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import AsyncIterator, Callable, Collection, Coroutine, Iterable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, TypeVar, cast

from perdure.domain.jobs.ids import JobId
from perdure.enqueue.stores import open_checked
from perdure.storage.effects import Effects
from perdure.storage.port import Store

T = TypeVar("T")


class Keeper:
    """A thread whose loop owns one store, from `open` to `close`."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="perdure-sandbox", daemon=True)

    def open(self) -> Store:
        """Open and migrate the store; the returned store may be used from any loop."""
        self._thread.start()
        try:
            self.call(open_checked(self._store, migrate=True))
        except BaseException:
            self._end()
            raise
        return cast("Store", KeptStore(self._store, self))

    def call(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine on the store's loop, and block until it is done."""
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()

    async def pass_on(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine on the store's loop, and await it on the caller's."""
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(coroutine, self._loop))

    def call_soon(self, what: Callable[[], object]) -> None:
        """Call a function on the store's loop, without waiting for it."""
        self._loop.call_soon_threadsafe(what)

    def close(self) -> None:
        """Close the store and end the thread."""
        try:
            self.call(self._store.close())
        finally:
            self._end()

    def _end(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


class KeptStore:
    """The whole storage port; the keeper runs each of its coroutines."""

    def __init__(self, store: Store, keeper: Keeper) -> None:
        self._store = store
        self._keeper = keeper

    def __getattr__(self, name: str) -> Any:
        attribute = getattr(self._store, name)
        if not inspect.iscoroutinefunction(attribute):
            return attribute
        return lambda *args, **kwargs: self._keeper.pass_on(attribute(*args, **kwargs))

    async def open(self) -> None:
        """Do nothing: it is open."""

    async def close(self) -> None:
        """Do nothing: it stays open until the sandbox ends."""

    async def begin_effects(self, *, blocking: bool = False) -> Effects:
        """Begin on the handler's loop: the connection is its own, and is used there."""
        return await self._store.begin_effects(blocking=blocking)

    def ring(self, queues: Iterable[str]) -> None:
        """Notify workers, soon and without waiting, that these queues have work."""
        self._keeper.call_soon(partial(self._store.ring, tuple(queues)))

    def await_ends(self, job_ids: Collection[JobId]) -> None:
        """Ask workers, soon and without waiting, to notify when these jobs end."""
        self._keeper.call_soon(partial(self._store.await_ends, tuple(job_ids)))

    def ring_ended(self, job_ids: Iterable[JobId]) -> None:
        """Notify, soon and without waiting, the callers that await these ended jobs."""
        self._keeper.call_soon(partial(self._store.ring_ended, tuple(job_ids)))

    @asynccontextmanager
    async def wakeups(self) -> AsyncIterator[AsyncIterator[None]]:
        """Listen on the caller's own loop, with connections of its own."""
        async with self._sibling() as sibling, sibling.wakeups() as wakeups:
            yield wakeups

    @asynccontextmanager
    async def ends(self) -> AsyncIterator[AsyncIterator[None]]:
        """Listen on the caller's own loop, with connections of its own."""
        async with self._sibling() as sibling, sibling.ends() as ends:
            yield ends

    @asynccontextmanager
    async def _sibling(self) -> AsyncIterator[Store]:
        sibling = self._store.sibling()
        await sibling.open()
        try:
            yield sibling
        finally:
            await sibling.close()

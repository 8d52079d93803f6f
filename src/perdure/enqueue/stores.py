"""One open store per event loop, opened on first use.

A connection belongs to the loop and to the process that made it. After a fork, the child does not touch the parent's
store and opens its own; where that is unsafe (SQLite), opening raises ForkError. If a loop is closed before its store,
the next caller discards that store.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from datetime import timedelta
from typing import Final
from weakref import WeakKeyDictionary

from msgspec import Struct

from perdure.enqueue.counts import EnqueueCounts
from perdure.enqueue.endings import JobEndings
from perdure.enqueue.group_commit import GroupCommit
from perdure.storage.port import Store

_LEFT_BEHIND: Final[list[object]] = []  # stores of a parent process: neither used nor collected here


class OpenStore(Struct, frozen=True, eq=False):
    """An open store, and the group commit that concurrent callers share."""

    store: Store
    group_commit: GroupCommit


class Stores:
    """The stores of one app."""

    def __init__(
        self, make: Callable[[], Store], *, migrate: bool, patience: timedelta, counts: EnqueueCounts | None = None
    ) -> None:
        self._make = make
        self._counts = counts or EnqueueCounts()
        self.migrate = migrate
        self._patience = patience
        self._pid = os.getpid()
        self._open: dict[asyncio.AbstractEventLoop, OpenStore] = {}
        self._opening: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = WeakKeyDictionary()
        self._outcomes: dict[asyncio.AbstractEventLoop, JobEndings] = {}

    def current(self) -> OpenStore | None:
        """The store of the running loop, if it is open."""
        if self._pid != os.getpid():
            self._after_fork()
        return self._open.get(asyncio.get_running_loop())

    async def here(self) -> OpenStore:
        """The store of the running loop, open and with the right schema."""
        opened = self.current()
        if opened is not None:
            return opened
        loop = asyncio.get_running_loop()
        async with self._opening.setdefault(loop, asyncio.Lock()):
            opened = self._open.get(loop)
            if opened is None:
                await self._discard_closed()
                store = self._make()
                await open_checked(store, migrate=self.migrate)
                opened = self._open[loop] = OpenStore(store, GroupCommit(store, self._patience, self._counts))
        return opened

    async def outcomes(self) -> JobEndings:
        """Where callers on the running loop wait for jobs to become final."""
        store = (await self.here()).store
        loop = asyncio.get_running_loop()
        return self._outcomes.get(loop) or self._outcomes.setdefault(loop, JobEndings(store))

    async def close(self) -> None:
        """Close the store of the running loop, if there is one, and the stores of closed loops."""
        if self._pid != os.getpid():
            self._after_fork()
        if (outcomes := self._outcomes.pop(asyncio.get_running_loop(), None)) is not None:
            await outcomes.close()
        opened = self._open.pop(asyncio.get_running_loop(), None)
        if opened is not None:
            await opened.store.close()
        await self._discard_closed()

    async def _discard_closed(self) -> None:
        """Discard the stores of closed loops: they are unusable, and each keeps its loop from being collected."""
        for loop in list(self._open):
            if loop.is_closed():
                self._outcomes.pop(loop, None)
                opened = self._open.pop(loop, None)
                if opened is not None:
                    await asyncio.to_thread(opened.store.abandon)

    def _after_fork(self) -> None:
        _LEFT_BEHIND.extend((*self._open.values(), *self._outcomes.values()))
        self._open, self._outcomes = {}, {}
        self._opening = WeakKeyDictionary()
        self._pid = os.getpid()


async def open_checked(store: Store, *, migrate: bool) -> None:
    """Open a store, and migrate its schema or only check it."""
    await store.open()
    try:
        if migrate:
            await store.migrate()
        else:
            await store.check_schema()
    except BaseException:
        await store.close()
        raise

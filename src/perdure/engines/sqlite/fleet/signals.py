"""Wake-ups: how a worker learns within a fraction of a millisecond that there is work.

Jobs made ready by this store wake it directly. Those of other processes are seen in the write-ahead log, which every
commit writes to: on Linux inotify watches that file, elsewhere somebody looks every 10 ms.

A commit becomes visible only after its last write to the log, by a change in shared memory that wakes nobody. So our
writers open and close the log after a commit that made jobs ready, which the watchers take as "look now" (it costs a
few microseconds; setting the file's times would cost a journal entry); of many that follow each other closely only some
do. After a write the watcher looks a little later, and again with growing pauses, whatever it sees: the write may be
that of an app's own connection which enqueues in its own transaction, and what is seen first may be an older commit.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Collection, Iterable, Iterator
from contextlib import asynccontextmanager
from typing import Final

from perdure.domain.jobs.ids import JobId
from perdure.engines.sqlite.database.database import Database
from perdure.engines.sqlite.database.drivers import Connection
from perdure.engines.sqlite.fleet import inotify
from perdure.engines.sqlite.lanes.own_thread import in_own_thread
from perdure.errors import StoreError

_POLL_EVERY: Final = 0.010
_PAUSES: Final = (0.001, 0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.064)


class SignalPart:
    """Signals of the store."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def ring(self, queues: Iterable[str]) -> None:  # noqa: ARG002 - a wake-up here means "look at all of yours"
        """Wake the listeners of this store; those of other processes have been told by the commit itself."""
        self._database.notify()

    @asynccontextmanager
    async def wakeups(self) -> AsyncIterator[AsyncIterator[None]]:
        """Listen: each item means "look now"; items that pile up are one."""
        event = asyncio.Event()
        connection = await in_own_thread(self._database.connect_to_look)
        try:
            doorbell = Doorbell(self._database, connection, event)
            self._database.listen(event.set)
            try:
                yield Wakeups(event)
            finally:
                doorbell.close()
                self._database.unlisten(event.set)
        finally:
            connection.close()

    def await_ends(self, job_ids: Collection[JobId]) -> None:
        """Nothing is to be asked for: every commit shows in the write-ahead log."""

    def ring_ended(self, job_ids: Iterable[JobId]) -> None:
        """Nothing is to be rung: the commit has done so."""

    @asynccontextmanager
    async def ends(self) -> AsyncIterator[AsyncIterator[None]]:
        """Listen: each item means that something was committed; items that pile up are one."""
        event = asyncio.Event()
        connection = await in_own_thread(self._database.connect_to_look)
        try:
            doorbell = Doorbell(self._database, connection, event, heeds_all=True)
            try:
                yield Wakeups(event)
            finally:
                doorbell.close()
        finally:
            connection.close()


class Wakeups:
    """Wake-ups, one after another, for ever."""

    def __init__(self, event: asyncio.Event) -> None:
        self._event = event

    def __aiter__(self) -> Wakeups:
        return self

    async def __anext__(self) -> None:
        await self._event.wait()
        self._event.clear()


class Doorbell:
    """Watches what other connections commit, and sets the event when there is something to do (`heeds_all`: always).

    It looks from the loop's own thread: that takes some microseconds, and reading never waits for a writer.
    """

    def __init__(
        self, database: Database, connection: Connection, event: asyncio.Event, *, heeds_all: bool = False
    ) -> None:
        self._heeds_all = heeds_all
        self._loop = asyncio.get_running_loop()
        self._connection = connection
        self._event = event
        self._sql = database.statements("fleet/signals.sql")
        self._timer: asyncio.TimerHandle | None = None
        self._pauses: Iterator[float] = iter(())
        self._descriptor: int | None = None
        self._version = self._connection.run(self._sql["version"])
        try:
            self._descriptor = inotify.watch(database.log)
        except OSError:
            self._poll()
        else:
            self._loop.add_reader(self._descriptor, self._touched)

    def close(self) -> None:
        """Watch no longer."""
        if self._timer:
            self._timer.cancel()
        if self._descriptor is not None:
            self._loop.remove_reader(self._descriptor)
            os.close(self._descriptor)

    def _touched(self) -> None:
        assert self._descriptor is not None  # noqa: S101 - it is this one that has something to say
        written, opened = inotify.what_happened(self._descriptor)
        if opened:
            self._look()
        if written:
            self._look_often_again()

    def _look_often_again(self) -> None:
        """Begin with the shortest pause, but never put off a look that is due as soon."""
        self._pauses = iter(_PAUSES)
        if self._timer and self._timer.when() > self._loop.time() + _PAUSES[0]:
            self._timer.cancel()
            self._timer = None
        if not self._timer:
            self._look_later()

    def _look_later(self) -> None:
        if (pause := next(self._pauses, None)) is not None:
            self._timer = self._loop.call_later(pause, self._look_again)

    def _look_again(self) -> None:
        self._timer = None
        self._look()
        self._look_later()

    def _poll(self) -> None:
        self._look()
        self._timer = self._loop.call_later(_POLL_EVERY, self._poll)

    def _look(self) -> None:
        """Set the event if somebody has committed since the last look, and that left something to do."""
        try:
            version = self._connection.run(self._sql["version"])
            if version == self._version:
                return
            self._version = version
            if self._heeds_all or self._connection.run(self._sql["anything"])[0][0]:
                self._event.set()
        except StoreError:
            self._event.set()  # the listener will meet the trouble itself, and tell of it

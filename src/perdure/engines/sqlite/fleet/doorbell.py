"""The doorbell: watches the write-ahead log for what other connections commit (see `signals`)."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from typing import Final

from perdure.engines.sqlite.database.database import Database
from perdure.engines.sqlite.database.drivers import Connection
from perdure.engines.sqlite.fleet import inotify
from perdure.errors import StoreError

_POLL_INTERVAL_SECONDS: Final = 0.010
_PAUSES_SECONDS: Final = (0.001, 0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.064)


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
    """Watches what other connections commit, and sets the event when there is work (`all_commits`: after each commit).

    It looks from the loop's own thread: that takes some microseconds, and reading never waits for a writer.
    """

    def __init__(
        self, database: Database, connection: Connection, event: asyncio.Event, *, all_commits: bool = False
    ) -> None:
        self._all_commits = all_commits
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
        assert self._descriptor is not None  # noqa: S101 - the loop calls this for that descriptor only
        written, opened = inotify.what_happened(self._descriptor)
        if opened:
            self._look()
        if written:
            self._look_often_again()

    def _look_often_again(self) -> None:
        """Begin with the shortest pause, but never put off a look that is due as soon."""
        self._pauses = iter(_PAUSES_SECONDS)
        if self._timer and self._timer.when() > self._loop.time() + _PAUSES_SECONDS[0]:
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
        self._timer = self._loop.call_later(_POLL_INTERVAL_SECONDS, self._poll)

    def _look(self) -> None:
        """Set the event if there was a commit since the last look that left something to do."""
        try:
            version = self._connection.run(self._sql["version"])
            if version == self._version:
                return
            self._version = version
            if self._all_commits or self._connection.run(self._sql["anything"])[0][0]:
                self._event.set()
        except StoreError:
            self._event.set()  # the listener meets the same error, and reports it

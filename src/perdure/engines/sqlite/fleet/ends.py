"""How a caller that waits for a job learns of its end: every commit shows in the write-ahead log."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection, Iterable
from contextlib import asynccontextmanager

from perdure.domain.jobs.ids import JobId
from perdure.engines.sqlite.database.database import Database
from perdure.engines.sqlite.fleet.doorbell import Doorbell, Wakeups
from perdure.engines.sqlite.lanes.own_thread import in_own_thread


class Ends:
    """Wake-ups for callers that wait for jobs."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def await_ends(self, job_ids: Collection[JobId]) -> None:
        """Does nothing: every commit shows in the write-ahead log."""

    def ring_ended(self, job_ids: Iterable[JobId]) -> None:
        """Does nothing: the commit has notified the listeners."""

    @asynccontextmanager
    async def ends(self) -> AsyncIterator[AsyncIterator[None]]:
        """Listen: each item means that something was committed; items that pile up are one."""
        event = asyncio.Event()
        connection = await in_own_thread(self._database.connect_to_look)
        try:
            doorbell = Doorbell(self._database, connection, event, all_commits=True)
            try:
                yield Wakeups(event)
            finally:
                doorbell.close()
        finally:
            connection.close()

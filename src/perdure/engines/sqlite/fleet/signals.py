"""Wake-ups: how a worker learns within a fraction of a millisecond that there is work.

Jobs made ready by this store wake it directly. Jobs of other processes are seen in the write-ahead log, which every
commit writes to: on Linux inotify watches that file, elsewhere a thread looks every 10 ms.

A commit becomes visible only after its last write to the log, by a change in shared memory that wakes no watcher. So
perdure's writers open and close the log after a commit that made jobs ready, which the watchers take as "look now" (it
costs a few microseconds; setting the file's times would cost a journal entry); of many in quick succession only some
do. After a write the watcher looks a little later, and again with growing pauses, in any case: the write may come from
an app's own connection that enqueues in its own transaction, and the first look may see an older commit.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager

from perdure.engines.sqlite.database.database import Database
from perdure.engines.sqlite.fleet.doorbell import Doorbell, Wakeups
from perdure.engines.sqlite.lanes.own_thread import in_own_thread


class SignalPart:
    """Signals of the store."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def ring(self, queues: Iterable[str]) -> None:  # noqa: ARG002 - a wake-up means "look at all your queues"
        """Wake the listeners of this store; the commit itself has notified other processes."""
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

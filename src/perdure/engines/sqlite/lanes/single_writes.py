"""A short way for a single small write: at once, on the event loop's own thread.

The way through the writer's thread and back costs two wake-ups, which on a fast disk is as much as the commit itself.
So when nothing else is being written, the disk has lately been quick, and the lock is free, one small transaction
is done right here. Whenever one of these does not hold, the answer is "not now" and the work goes the usual way; a
disk that turns out slow closes this way for a while. What can be slow is never done here: waiting for a lock, opening
a connection, copying the log back.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Final, Protocol, TypeVar

from perdure.engines.sqlite.database.drivers import Connection
from perdure.engines.sqlite.database.faults import StoreBusy
from perdure.engines.sqlite.database.transaction import Transaction
from perdure.engines.sqlite.lanes import wal as log
from perdure.engines.sqlite.lanes.lane import Work
from perdure.engines.sqlite.lanes.own_thread import in_own_thread
from perdure.errors import StoreError

T = TypeVar("T")

_WRITES_BEFORE_OPENING: Final = 16  # by the usual way: a short script never needs this one
_SLOW_WRITE_SECONDS: Final = 0.001  # seconds on average
_LATEST_WRITE_WEIGHT: Final = 0.05  # the weight of the latest write in that average: one of 20 ms is enough
_CLOSED_SECONDS: Final = 1.0
_COMMITS_PER_CHECKPOINT: Final = 500
_RING_INTERVAL_SECONDS: Final = 0.001  # a listener looks again this soon, even without further writes
_LOOK_INTERVAL_SECONDS: Final = 0.001  # a file may as well be moved this long after a check


class NotNow(Exception):  # noqa: N818 - it is an answer, not an error
    """The work was not done, and nothing has happened."""


class Begin(Protocol):
    """How a transaction begins."""

    def __call__(self, connection: Connection, *, looks: bool) -> Transaction:
        """A connection that is inside BEGIN; `looks` whether its file is still where it was."""


class SingleWrites:
    """One connection of the loop's own, used only while that is quick."""

    def __init__(
        self,
        connect: Callable[[], Connection],
        begin: Begin,
        path_of_log: str,
        checkpoint: Callable[[], object],
    ) -> None:
        self._connect = connect
        self._begin = begin
        self._log = path_of_log
        self._checkpoint = checkpoint
        self._asked = 0
        self._connection: Connection | None = None
        self._opening: asyncio.Task[None] | None = None
        self._closed_until = 0.0
        self._flushes = True
        self._pace = 0.0  # the recent average of seconds per write
        self._commits = 0
        self._next_ring = 0.0
        self._next_look = 0.0  # when to look again whether the file is still where it was

    def write(self, work: Work[T], *, flushes: bool) -> tuple[T, bool]:
        """Do the work and commit; its result, and whether it made jobs ready. Raises NotNow if it was not done.

        Without a flush the commit survives the death of every process, but a power cut may undo it, and with it
        nothing that was flushed before or is flushed after.
        """
        connection = self._connection
        begun = time.monotonic()
        if connection is None or begun < self._closed_until:
            self._prepare()
            raise NotNow
        try:
            if flushes is not self._flushes:
                connection.run(f"PRAGMA synchronous = {'FULL' if flushes else 'NORMAL'}")
                self._flushes = flushes
            connection.run("BEGIN IMMEDIATE")
        except StoreBusy:
            raise NotNow from None
        try:
            looks = begun >= self._next_look
            transaction = self._begin(connection, looks=looks)
            if looks:
                self._next_look = begun + _LOOK_INTERVAL_SECONDS
            result = work(transaction)
            connection.run("COMMIT")
        except BaseException:
            self._roll_back(connection)
            raise
        ended = time.monotonic()
        self._pace += (ended - begun - self._pace) * _LATEST_WRITE_WEIGHT
        if self._pace > _SLOW_WRITE_SECONDS:
            self._closed_until = ended + _CLOSED_SECONDS
            self._pace = 0.0
        self._commits += 1
        if self._commits % _COMMITS_PER_CHECKPOINT == 0:
            self._checkpoint()
        if transaction.rings and ended >= self._next_ring:
            self._next_ring = ended + _RING_INTERVAL_SECONDS
            log.touch(self._log)
        return result, transaction.rings

    async def close(self) -> None:
        """Close the connection."""
        if self._opening is not None:
            await asyncio.wait([self._opening])
        self.abandon()

    def abandon(self) -> None:
        """The same once the event loop is closed, and nothing of it can be under way."""
        self._give_up()
        self._asked = 0

    def _prepare(self) -> None:
        self._asked += 1
        if self._asked == _WRITES_BEFORE_OPENING:
            self._opening = asyncio.get_running_loop().create_task(self._open())

    async def _open(self) -> None:
        try:
            connection = await in_own_thread(self._connect)
        except StoreError:
            return  # the usual way will report the problem
        connection.run("PRAGMA wal_autocheckpoint = 0")
        connection.run("PRAGMA cache_size = -4000")
        self._flushes = True
        self._connection = connection

    def _roll_back(self, connection: Connection) -> None:
        try:
            if connection.in_transaction:
                connection.run("ROLLBACK")
        except StoreError:
            self._give_up()

    def _give_up(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

"""The lane of writes: one thread, one connection, one transaction for all waiting operations.

A commit costs one disk flush, for any number of operations. So the writer takes every operation that arrived during the
last commit and puts them into the next one (group commit): a single operation never waits; many operations share the
flush.

Operations must not harm each other. They run one after another without savepoints, which would cost each of them two
statements. If one fails, the whole transaction is rolled back and every operation runs again in one of its own, so that
the error reaches only its caller. Work must therefore be repeatable: it keeps no state between runs.

An operation waits 30 s for a lock that another process holds, counted from when it was handed in. Then it is refused,
and later operations of its batch keep waiting.

The log (WAL) is copied back by the process that commits past 4,000 pages, and by an idle writer; if readers have kept
it from starting over and it has grown past its limit, it is truncated between two transactions.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from perdure.engines.sqlite.database.drivers import Connection
from perdure.engines.sqlite.database.faults import StoreBusy
from perdure.engines.sqlite.database.transaction import Transaction
from perdure.engines.sqlite.lanes import lock_waits as patience
from perdure.engines.sqlite.lanes import wal as log
from perdure.engines.sqlite.lanes.lane import Lane, Operation
from perdure.errors import StoreError

_IDLE_AFTER_SECONDS: Final = 1.0
_COMMITS_PER_LOOK: Final = 64
_COMMITS_OF_A_WRITER: Final = 16


class Writer(Lane):
    """Group commit. `rang` is called on the loop after a commit that made jobs ready."""

    def __init__(
        self,
        connect: Callable[[], Connection],
        begin: Callable[[Connection], Transaction],
        path_of_log: str,
        rang: Callable[[], None],
    ) -> None:
        super().__init__("perdure-sqlite-writer", connect)
        self._begin = begin
        self._log = path_of_log
        self._rang = rang
        self._rings = False
        self._touches = False
        self._dirty = False
        self._commits = 0
        self._grown = False
        self._checkpoint_wanted = False
        self._locked_since: float | None = None  # by another process, since when this lane has wanted the lock

    def perform(self, connection: Connection, batch: list[Operation]) -> None:
        """Run a batch in one transaction; if that fails because of one of them, each in its own."""
        batch = [operation for operation in batch if not operation.abandoned()]
        if batch and not self._together(connection, batch):
            for operation in batch:
                if not operation.answered:
                    operation.error = None
                    self._together(connection, [operation])
        self._commits += 1

    def afterwards(self, connection: Connection) -> None:
        """Notify other processes of ready jobs, and maintain the log."""
        if self._touches:
            self._touches = False
            log.touch(self._log)
        if self._checkpoint_wanted:
            self._checkpoint_wanted = False
            _checkpoint(connection, "PASSIVE")
        if self._commits % _COMMITS_PER_LOOK == 0:
            self._cut_log(connection)
        if not self._grown and self._commits > _COMMITS_OF_A_WRITER:
            self._grow_log(connection)

    def _together(self, connection: Connection, batch: list[Operation]) -> bool:
        """Run a batch in one transaction. False: nothing happened; running them one by one may show which one fails."""
        try:
            batch = self._locked_for(connection, batch)
            if not batch:
                return True
            transaction = self._begin(connection)
        except StoreError as error:
            _refuse(batch, error)
            _roll_back(connection)
            return True
        for operation in batch:
            try:
                operation.result = operation.work(transaction)
            except Exception as error:  # noqa: BLE001 - passed to the caller
                operation.error = error
                _roll_back(connection)
                return len(batch) == 1
        try:
            connection.run("COMMIT")
        except StoreError as error:
            _refuse(batch, error)
            _roll_back(connection)
            return True
        for operation in batch:
            operation.done = True
        self._dirty = True
        if transaction.rings:
            self._rings = self._touches = True
        return True

    def _locked_for(self, connection: Connection, batch: list[Operation]) -> list[Operation]:
        """Get the lock; the operations that still wait for it then. Those whose time is over are refused meanwhile."""
        while batch:
            try:
                connection.run("BEGIN IMMEDIATE")
            except StoreBusy as busy:
                batch = self._patient(batch, busy)
                time.sleep(patience.random_wait())
            else:
                self._locked_since = None
                break
        return batch

    def _patient(self, batch: list[Operation], busy: StoreBusy) -> list[Operation]:
        now = time.monotonic()
        since = self._locked_since = self._locked_since or now
        if now - max(since, batch[0].put_at) < patience.LOCK_WAIT_LIMIT_SECONDS:  # the first came first
            return batch
        late = [
            operation for operation in batch if now - max(since, operation.put_at) >= patience.LOCK_WAIT_LIMIT_SECONDS
        ]
        _refuse(late, patience.given_up(busy))
        self.answer_early(late)
        return [operation for operation in batch if not operation.answered]

    def is_settled(self) -> bool:
        """Whether it has nothing to do, and the log has the size at which commits are quick."""
        return self._grown and not self.is_busy()

    def ask_for_checkpoint(self) -> None:
        """Copy the log back soon, for commits that were made elsewhere in this process."""
        self._dirty = self._checkpoint_wanted = True
        self.submit(lambda _: None)

    def delivered(self) -> None:
        """Wake the listeners of this store, on its loop."""
        if self._rings:
            self._rings = False
            self._rang()

    def rest(self) -> float | None:
        """Only a writer that has written has a log to copy back."""
        return _IDLE_AFTER_SECONDS if self._dirty else None

    def idle(self, connection: Connection) -> None:
        """Copy the log back while no caller waits."""
        self._dirty = False
        _checkpoint(connection, "PASSIVE")
        self._cut_log(connection)

    def _cut_log(self, connection: Connection) -> None:
        if log.size(self._log) > log.WAL_LIMIT_BYTES:
            _checkpoint(connection, "TRUNCATE")
            self._grown = False

    def _grow_log(self, connection: Connection) -> None:
        self._grown = log.is_grown(self._log)
        if self._grown:
            return
        try:
            connection.run("BEGIN IMMEDIATE")
        except StoreError:
            return  # another process writes just now: later
        log.grow(self._log)
        _roll_back(connection)


def _checkpoint(connection: Connection, mode: str) -> None:
    try:
        connection.run(f"PRAGMA wal_checkpoint({mode})")
    except StoreError:
        return  # a reader is in the way, or the disk is full: what is in the log is safe there


def _roll_back(connection: Connection) -> None:
    if connection.in_transaction:
        connection.run("ROLLBACK")


def _refuse(batch: list[Operation], error: StoreError) -> None:
    for operation in batch:
        operation.error = error

"""The lane of reads: a second connection, so that looking never waits for writing."""

from __future__ import annotations

import time
from collections.abc import Callable

from perdure.engines.sqlite.database.drivers import Connection
from perdure.engines.sqlite.database.transaction import Transaction
from perdure.engines.sqlite.lanes.lane import Lane, Operation
from perdure.engines.sqlite.lanes.lock_waits import retry_while_locked
from perdure.errors import StoreError
from perdure.storage.time_limits import too_late


class Reader(Lane):
    """Each operation sees one consistent picture of the database, as of its beginning."""

    def __init__(self, connect: Callable[[], Connection], begin: Callable[[Connection], Transaction]) -> None:
        super().__init__("perdure-sqlite-reader", connect)
        self._begin = begin
        self._deadline: float | None = None

    def perform(self, connection: Connection, batch: list[Operation]) -> None:
        """Do each read in a transaction of its own."""
        connection.stop_when(self._is_late)
        for operation in batch:
            if not operation.abandoned():
                self._deadline = operation.deadline
                self._read(connection, operation)

    def _is_late(self) -> bool:
        return self._deadline is not None and time.monotonic() >= self._deadline

    def _read(self, connection: Connection, operation: Operation) -> None:
        def once() -> None:
            if self._is_late():
                raise too_late()
            connection.run("BEGIN")
            try:
                operation.result = operation.work(self._begin(connection))
            finally:
                if connection.in_transaction:
                    connection.run("ROLLBACK")

        try:
            retry_while_locked(once)
        except Exception as error:  # noqa: BLE001 - passed to the caller
            operation.error = too_late() if isinstance(error, StoreError) and self._is_late() else error

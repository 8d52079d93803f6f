"""Connections of psycopg 3, blocking and async.

In a pipeline of the caller, answers come later, and so does the news that a transaction has ended. Entering and leaving
an inner pipeline waits for them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from perdure.engines.borrowed.connection import Borrowed, Database, Params, Rows

if TYPE_CHECKING:
    import psycopg

_IDLE = 0  # libpq's PQTRANS_IDLE


class BorrowedPsycopg(Borrowed):
    """A blocking connection of psycopg."""

    database = Database.POSTGRESQL
    library = "psycopg"

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self._connection = connection

    async def is_in_transaction(self) -> bool:
        """Without autocommit psycopg begins a transaction before the first statement."""
        self._catch_up()
        return _is_in_transaction(self._connection)

    async def run(self, sql: str, params: Params | None = None) -> Rows:
        """Run one statement and return its rows, as tuples with any row factory of the connection."""
        with self._connection.cursor(row_factory=_tuples()) as cursor:
            cursor.execute(sql.encode(), params)
            self._catch_up()
            return cursor.fetchall() if cursor.description else []

    def _catch_up(self) -> None:
        if self._connection.pgconn.pipeline_status:
            with self._connection.pipeline():
                pass


class BorrowedAsyncPsycopg(Borrowed):
    """An async connection of psycopg."""

    database = Database.POSTGRESQL
    library = "psycopg"
    is_async = True

    def __init__(self, connection: psycopg.AsyncConnection[Any]) -> None:
        self._connection = connection

    async def is_in_transaction(self) -> bool:
        """Without autocommit psycopg begins a transaction before the first statement."""
        await self._catch_up()
        return _is_in_transaction(self._connection)

    async def run(self, sql: str, params: Params | None = None) -> Rows:
        """Run one statement and return its rows, as tuples with any row factory of the connection."""
        async with self._connection.cursor(row_factory=_tuples()) as cursor:
            await cursor.execute(sql.encode(), params)
            await self._catch_up()
            return await cursor.fetchall() if cursor.description else []

    async def _catch_up(self) -> None:
        if self._connection.pgconn.pipeline_status:
            async with self._connection.pipeline():
                pass


def _is_in_transaction(connection: psycopg.Connection[Any] | psycopg.AsyncConnection[Any]) -> bool:
    return not connection.autocommit or connection.pgconn.transaction_status != _IDLE


def _tuples() -> Any:
    from psycopg.rows import tuple_row  # noqa: PLC0415 - the caller has loaded it

    return tuple_row

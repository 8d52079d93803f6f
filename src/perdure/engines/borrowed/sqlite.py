"""Connections to an SQLite file: the standard library's, aiosqlite's (which are the same underneath), and apsw's.

The standard library begins a transaction by itself before the first write, unless it is told not to
(`isolation_level=None`, or `autocommit=True`). It would do so too late for a savepoint, which would then be a
transaction of its own and be committed by its release; so here the transaction is begun first. It is IMMEDIATE because
the next statement writes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from perdure.engines.borrowed.connection import BorrowedSqlite, Params, Rows

if TYPE_CHECKING:
    import sqlite3

    import apsw

_BEGIN: Final = "BEGIN IMMEDIATE"


class BorrowedStdlib(BorrowedSqlite):
    """A connection of the standard library's sqlite3."""

    library = "sqlite3"

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    async def is_in_transaction(self) -> bool:
        """Whether a transaction is open; begins one if the driver would."""
        if not self._connection.in_transaction and _begins_by_itself(self._connection):
            await self.run(_BEGIN)
        return self._connection.in_transaction

    async def run(self, sql: str, params: Params | None = None) -> Rows:
        """Run one statement and return its rows."""
        return self._execute(sql, params or ())[0]

    async def change(self, sql: str, params: Params) -> int:
        """Run one statement that writes and return how many rows it touched."""
        return self._execute(sql, params)[1]

    def _execute(self, sql: str, params: Params) -> tuple[Rows, int]:
        cursor = self._connection.cursor()
        cursor.row_factory = None  # regardless of the connection's
        try:
            cursor.execute(sql, params)
            return cursor.fetchall(), cursor.rowcount
        finally:
            cursor.close()


class BorrowedAiosqlite(BorrowedSqlite):
    """A connection of aiosqlite."""

    library = "sqlite3"
    is_async = True

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    async def is_in_transaction(self) -> bool:
        """Whether a transaction is open; begins one if the driver would."""
        if not self._connection.in_transaction and _begins_by_itself(self._connection):
            await self.run(_BEGIN)
        return bool(self._connection.in_transaction)

    async def run(self, sql: str, params: Params | None = None) -> Rows:
        """Run one statement and return its rows."""
        return (await self._execute(sql, params or ()))[0]

    async def change(self, sql: str, params: Params) -> int:
        """Run one statement that writes and return how many rows it touched."""
        return (await self._execute(sql, params))[1]

    async def _execute(self, sql: str, params: Params) -> tuple[Rows, int]:
        async with self._connection.cursor() as cursor:
            cursor.row_factory = None
            await cursor.execute(sql, params)
            return list(await cursor.fetchall()), cursor.rowcount


class BorrowedApsw(BorrowedSqlite):
    """A connection of apsw, which never begins a transaction by itself."""

    library = "apsw"

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection

    async def is_in_transaction(self) -> bool:
        """Whether a transaction or an outermost savepoint is open."""
        return self._connection.in_transaction

    async def run(self, sql: str, params: Params | None = None) -> Rows:
        """Run one statement and return its rows."""
        cursor = self._connection.cursor()
        cursor.row_trace = _as_it_is
        return cursor.execute(sql, params or ()).fetchall()

    async def change(self, sql: str, params: Params) -> int:
        """Run one statement that writes and return how many rows it touched."""
        self._connection.cursor().execute(sql, params)
        return self._connection.changes()


def _begins_by_itself(connection: Any) -> bool:
    """Whether the standard library's driver is in the mode in which it begins transactions."""
    autocommit = getattr(connection, "autocommit", -1)  # Python 3.12; -1 there means: as isolation_level says
    return autocommit is not True and connection.isolation_level is not None


def _as_it_is(_cursor: Any, row: Sequence[Any]) -> Any:
    return row

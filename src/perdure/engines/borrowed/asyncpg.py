"""Connections of asyncpg."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from perdure.engines.borrowed.connection import Borrowed, Database, Params, Rows
from perdure.engines.shared.database.placeholders import numbered

_numbered = lru_cache(maxsize=64)(numbered)


class BorrowedAsyncpg(Borrowed):
    """A connection of asyncpg, or one that its pool has lent."""

    database = Database.POSTGRESQL
    library = "asyncpg"
    is_async = True

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    async def is_in_transaction(self) -> bool:
        """Outside `connection.transaction()` asyncpg commits every statement."""
        return bool(self._connection.is_in_transaction())

    async def run(self, sql: str, params: Params | None = None) -> Rows:
        """Run one statement, written with named parameters, and return its rows."""
        if not params:
            await self._connection.execute(sql)
            return []
        given = dict(params)
        text, names = _numbered(sql)
        rows: Rows = await self._connection.fetch(text, *(given[name] for name in names))
        return rows

"""What an engine needs from a connection of the caller."""

from __future__ import annotations

import asyncio
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any, ClassVar

Rows = Sequence[Sequence[Any]]
Params = Sequence[Any] | Mapping[str, Any]


class Database(StrEnum):
    """The kinds of database that perdure knows."""

    POSTGRESQL = "PostgreSQL"
    SQLITE = "SQLite"


class Borrowed(ABC):
    """A driver's connection that is the caller's. Nothing here commits or rolls back what the caller has begun.

    Methods are coroutines for every driver; those of a blocking driver never suspend, and so can be run to their end
    without an event loop. Errors are the driver's own.
    """

    database: ClassVar[Database]
    library: ClassVar[str]
    is_async: ClassVar[bool] = False

    @abstractmethod
    async def is_in_transaction(self) -> bool:
        """Whether the caller commits our writes later; False: every statement is committed at once.

        Where the driver begins a transaction by itself before the first write, it is begun here.
        """

    @abstractmethod
    async def run(self, sql: str, params: Params | None = None) -> Rows:
        """Run one statement and return its rows."""

    async def pause(self, seconds: float) -> None:
        """Wait a little."""
        if self.is_async:
            await asyncio.sleep(seconds)
        else:
            time.sleep(seconds)  # noqa: ASYNC251 - a blocking driver blocks


class BorrowedSqlite(Borrowed):
    """A connection to an SQLite file."""

    database = Database.SQLITE

    @abstractmethod
    async def change(self, sql: str, params: Params) -> int:
        """Run one statement that writes and return how many rows it touched."""

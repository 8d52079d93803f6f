"""Intake through a connection of the caller, in the caller's own transaction.

The plan is the store's own, run inside a savepoint. The connection must be of the library that this app uses for the
file, and lead to that very file. Nothing is opened here: an app that only hands in jobs through its own connections
never opens the file a second time. Workers notice the caller's commit by themselves.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, Final

from perdure.domain.jobs.job import NewJob, Receipt
from perdure.engines.borrowed.atomically import atomically
from perdure.engines.borrowed.connection import Borrowed, BorrowedSqlite
from perdure.engines.borrowed.recognise import CallerConnection
from perdure.engines.sqlite.database import files
from perdure.engines.sqlite.database.database import Database
from perdure.engines.sqlite.database.faults import is_about_schema
from perdure.engines.sqlite.database.plan import Do
from perdure.engines.sqlite.intake.insertion import plan_insert
from perdure.errors import ArgumentError, SchemaError

_BEGIN: Final = "BEGIN IMMEDIATE"
_FILES: Final = "PRAGMA database_list"  # reads nothing of the file, so that a deferred transaction stays fresh


class BorrowingPart:
    """Intake through connections of callers; needs no open store."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._sql = database.statements("intake/intake.sql")
        self._last_turn = 0

    def through(self, connection: Any, *, blocking: bool = False) -> ThroughConnection:
        """Intake through this connection; refuses a value that is no connection."""
        return ThroughConnection(self, CallerConnection(connection, blocking=blocking))

    async def check(self, borrowed: Borrowed) -> BorrowedSqlite:
        """Refuse a connection of another database, another library or another file."""
        driver, path = self._database.driver, self._database.path
        if not isinstance(borrowed, BorrowedSqlite):
            raise ArgumentError(
                "connection", f"leads to {borrowed.database}, and this app's jobs are in the SQLite file {path}"
            )
        if borrowed.library != driver:
            raise ArgumentError(
                "connection",
                f"is of {borrowed.library}, and this app opens {path} through {driver}: two SQLite libraries on one"
                f" file in one process break its locks and can corrupt it; add driver={borrowed.library} to the"
                f" app's URL (sqlite:///file.db?driver={borrowed.library})",
            )
        file = next(file for _, name, file in await borrowed.run(_FILES) if name == "main")
        if not file or not _is_same_file(file, path):
            raise ArgumentError(
                "connection", f"leads to {file or 'a database in memory'}, and this app's jobs are in {path}"
            )
        files.refuse_fork(path)
        return borrowed

    async def insert(self, borrowed: BorrowedSqlite, jobs: Sequence[NewJob]) -> list[Receipt]:
        """Follow the plan."""
        plan = plan_insert(self._sql, jobs, self._database.now(), self._turns)
        try:
            step = next(plan)
            while True:
                ask = borrowed.change if isinstance(step, Do) else borrowed.run
                step = plan.send(await ask(step.sql, step.params))
        except StopIteration as end:
            receipts: list[Receipt] = end.value
            return receipts

    def explain(self, error: Exception) -> Exception:
        """The error to be raised for one of the driver: its own, but for a schema that is not there."""
        if is_about_schema(str(error)):
            return SchemaError(f"{self._database.path}: {error}: run `perdure migrate`")
        return error

    def _turns(self, count: int) -> int:
        """Places in line by the clock; two callers at one instant share a place, and their jobs' ids decide."""
        first = max(self._database.now(), self._last_turn + 1)
        self._last_turn = first + count - 1
        return first


class ThroughConnection:
    """Intake through one connection of a caller."""

    def __init__(self, part: BorrowingPart, connection: CallerConnection) -> None:
        self._part = part
        self._connection = connection

    async def insert(self, jobs: Sequence[NewJob]) -> list[Receipt]:
        """Store all these jobs or none, as part of the caller's transaction."""
        borrowed = await self._part.check(await self._connection.borrow())
        if not jobs:
            return []
        try:
            return await atomically(borrowed, _BEGIN, lambda: self._part.insert(borrowed, jobs))
        except Exception as error:
            explained = self._part.explain(error)
            if explained is error:
                raise
            raise explained from error


def _is_same_file(one: str, other: str) -> bool:
    try:
        return os.path.samestat(os.stat(one), os.stat(other))  # noqa: PTH116 - only looks: opening would drop locks
    except OSError:
        return False

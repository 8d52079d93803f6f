"""Small writes of many tasks in one transaction.

On SQLite a writer that finds the file locked looks again and again, and one that looks often enough is served. With a
busy worker beside it, each small write of a handler then takes most of a second. Writes that wait at the same time are
therefore committed together, by a task that belongs to none of them: a caller that is cancelled takes no other's write
with it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from weakref import WeakKeyDictionary

from perdure_systems.kit.database import Database, Parameters

Statement = tuple[str, Parameters]


class GroupCommit:
    """`await writes.execute((sql, parameters), …)` returns when these statements are committed, all of them or none."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._writers: WeakKeyDictionary[asyncio.AbstractEventLoop, _Writer] = WeakKeyDictionary()

    async def execute(self, *statements: Statement) -> None:
        """Write, together with others that wait. An error of others' statements is not raised here.

        If the caller is cancelled before its statements are on their way, they are not written.
        """
        writer = self._writers.setdefault(asyncio.get_running_loop(), _Writer(self._database))
        await writer.add(statements)


class _Write:
    """The statements of one caller, and what it waits for."""

    def __init__(self, statements: Sequence[Statement]) -> None:
        self.statements = statements
        self.written: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def end(self, error: Exception | None) -> None:
        if self.written.done():  # the caller was cancelled
            return
        if error is None:
            self.written.set_result(None)
        else:
            self.written.set_exception(error)


class _Writer:
    """Writes for all callers of one event loop. Its task lives while there is something to write."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._waiting: list[_Write] = []
        self._task: asyncio.Task[None] | None = None

    async def add(self, statements: Sequence[Statement]) -> None:
        write = _Write(statements)
        self._waiting.append(write)
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._write_all())
        await write.written

    async def _write_all(self) -> None:
        while self._waiting:
            batch, self._waiting = [one for one in self._waiting if not one.written.done()], []
            try:
                error = await self._commit(batch)
                for write in batch:
                    write.end(await self._commit([write]) if error is not None and len(batch) > 1 else error)
            except asyncio.CancelledError:  # the event loop ends
                for write in [*batch, *self._waiting]:
                    write.written.cancel()
                raise

    async def _commit(self, batch: Sequence[_Write]) -> Exception | None:
        """Commit these writes; what kept them from it."""
        try:
            async with self._database.transaction() as session:
                for write in batch:
                    for sql, parameters in write.statements:
                        await session.execute(sql, parameters)
        except Exception as error:  # noqa: BLE001 - it is raised to the callers
            return error
        return None

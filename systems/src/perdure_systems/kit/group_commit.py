"""Small writes of many tasks in one transaction.

On SQLite a writer that finds the file locked looks again and again, and one that looks often enough is served. With a
busy worker beside it, each small write of a handler then takes most of a second. Writes that wait at the same time are
therefore committed together: the first task that gets its turn writes for all that wait.
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
        self._loops: WeakKeyDictionary[asyncio.AbstractEventLoop, _Waiting] = WeakKeyDictionary()

    async def execute(self, *statements: Statement) -> None:
        """Write, together with others that wait. An error of others' statements is not raised here."""
        waiting = self._loops.setdefault(asyncio.get_running_loop(), _Waiting())
        mine = _Write(statements)
        waiting.writes.append(mine)
        try:
            async with waiting.turn:
                if not mine.is_done:
                    await self._write_for_all(waiting, mine)
        finally:
            if mine in waiting.writes:  # given up before its turn came
                waiting.writes.remove(mine)

    async def _write_for_all(self, waiting: _Waiting, mine: _Write) -> None:
        batch, waiting.writes = waiting.writes, []
        try:
            await self._commit(batch)
        except Exception:
            others = [one for one in batch if one is not mine]
            waiting.writes[:0] = others
            if not others:
                raise
            await self._commit([mine])

    async def _commit(self, batch: Sequence[_Write]) -> None:
        async with self._database.transaction() as session:
            for write in batch:
                for sql, parameters in write.statements:
                    await session.execute(sql, parameters)
        for write in batch:
            write.is_done = True


class _Write:
    """The statements of one task."""

    def __init__(self, statements: Sequence[Statement]) -> None:
        self.statements = statements
        self.is_done = False


class _Waiting:
    """What the tasks of one event loop want to write."""

    def __init__(self) -> None:
        self.writes: list[_Write] = []
        self.turn = asyncio.Lock()

"""What operators change.

A command first finds the jobs that match, oldest first, and then moves those of them that still stand where they were
found; the moves, their keys and their lines in the audit trail are one transaction.
"""

from __future__ import annotations

from typing import Final

from perdure.clock import Clock
from perdure.domain.ids import JobId
from perdure.domain.states import ACTIVE, FINAL, PARKED, JobState
from perdure.engines.postgres.arrays import storable, text_array
from perdure.engines.postgres.connections import Pool
from perdure.engines.postgres.filters import BEFORE_ALL, select
from perdure.engines.postgres.insight import jobs_query
from perdure.engines.postgres.naming import Naming
from perdure.engines.postgres.wire import Params, Wire
from perdure.storage.records import JobFilter

_TRIES: Final = 3  # a statement sees no row that was moved while it waited for it: the next one does
_REACH: Final[dict[str, frozenset[JobState]]] = {
    "requeue": FINAL,
    "cancel": ACTIVE,
    "run_now": PARKED,
    "purge": FINAL,
}


class PostgresCommands:
    """Moves jobs on behalf of an actor, and writes down who did it."""

    def __init__(self, naming: Naming, pool: Pool, clock: Clock | None) -> None:
        self._statements = naming.statements("commands.sql")
        self._views = naming.statements("insight.sql")
        self._pool = pool
        self._clock = clock

    async def requeue(self, which: JobFilter, actor: str, limit: int) -> list[JobId]:
        """Give finished jobs that match a new life, in one step."""
        return await self._command("requeue", which, actor, limit)

    async def cancel(self, which: JobFilter, actor: str, why: str, limit: int) -> list[JobId]:
        """Call off jobs that match: parked and ready ones at once; a running one is asked to stop."""
        return await self._command("cancel", which, actor, limit, why=storable(why))

    async def run_now(self, which: JobFilter, actor: str, limit: int) -> list[JobId]:
        """Make parked jobs that match ready at once."""
        return await self._command("run_now", which, actor, limit)

    async def purge(self, which: JobFilter, actor: str, limit: int) -> list[JobId]:
        """Delete finished jobs that match, with their attempts."""
        return await self._command("purge", which, actor, limit)

    async def _command(self, name: str, which: JobFilter, actor: str, limit: int, **extra: str) -> list[JobId]:
        selection = select(which, _REACH[name])
        if not selection.conditions or limit <= 0:
            return []
        for conditions in selection.conditions.values():
            conditions.append("p.job_id > %(after)s::uuid")
        find = f"SELECT id {jobs_query(self._views, selection, 'ASC')}"
        params = {"actor": actor, "now": self._clock.now() if self._clock else None, **extra}

        async def work(wire: Wire) -> list[JobId]:
            """Go on behind a page in which some were left alone, until there are enough, or no more."""
            moved: list[JobId] = []
            after = BEFORE_ALL
            while len(moved) < limit:
                missing = limit - len(moved)
                found = await wire.fetch(find, {**selection.params, "limit": missing, "after": after})
                if found:
                    moved += await self._move(wire, name, [job_id for (job_id,) in found], params)
                    after = found[-1][0]
                if len(found) < missing:
                    break
            return moved

        return await self._pool.transaction(work)

    async def _move(self, wire: Wire, name: str, ids: list[JobId], params: Params) -> list[JobId]:
        """Move those of these jobs that can be. One that went from place to place just then is looked for again."""
        moved: list[JobId] = []
        for _ in range(_TRIES if name == "cancel" else 1):
            rows = await wire.fetch(self._statements[name], {**params, "ids": text_array(ids)})
            moved += [JobId(job_id) for (job_id,) in rows]
            ids = sorted(set(ids).difference(moved))
            if not ids:
                break
        return moved

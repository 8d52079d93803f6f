"""What operators change.

A command first finds the jobs that match, oldest first, and then moves those of them that still stand where they were
found; the moves, their keys and their lines in the audit trail are one transaction.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import partial
from typing import Final

from perdure.clock import Clock
from perdure.domain.jobs.ids import JobId, WorkerId
from perdure.domain.jobs.states import ACTIVE, FINAL, PARKED, JobState
from perdure.engines.postgres.database.arrays import number_array, storable, text_array
from perdure.engines.postgres.database.connections import Pool
from perdure.engines.postgres.database.naming import Naming
from perdure.engines.postgres.database.wire import Params, Wire
from perdure.engines.postgres.flows.settling import Settling
from perdure.engines.postgres.operate.views.filters import BEFORE_ALL, select
from perdure.engines.postgres.operate.views.insight import jobs_query
from perdure.storage.records import JobFilter

CHILDREN_AT_ONCE: Final = 1_000
"""How many children are cancelled in one transaction when their parent is deleted."""

_TRIES: Final = 3  # a statement sees no row that was moved while it waited for it: the next one does
_REACH: Final[dict[str, frozenset[JobState]]] = {
    "requeue": FINAL,
    "cancel": ACTIVE,
    "run_now": PARKED,
    "reschedule": PARKED,
    "mark": frozenset(JobState),
    "delete": frozenset(JobState),
    "purge": FINAL,
}


class CommandPart:
    """Moves jobs on behalf of an actor, and writes down who did it."""

    def __init__(self, naming: Naming, pool: Pool, clock: Clock | None, settling: Settling) -> None:
        self._statements = naming.statements("operate/commands/commands.sql")
        self._views = naming.statements("operate/views/insight.sql")
        self._pool = pool
        self._clock = clock
        self._settling = settling

    async def requeue(self, which: JobFilter, actor: str, limit: int) -> list[JobId]:
        """Give finished jobs that match a new life, in one step."""
        return await self._command("requeue", which, actor, limit)

    async def cancel(self, which: JobFilter, actor: str, why: str, limit: int) -> list[JobId]:
        """Call off jobs that match: parked and ready ones at once; a running one is asked to stop."""
        return await self._command("cancel", which, actor, limit, why=storable(why))

    async def run_now(self, which: JobFilter, actor: str, limit: int) -> list[JobId]:
        """Make parked jobs that match ready at once."""
        return await self._command("run_now", which, actor, limit)

    async def reschedule(self, which: JobFilter, due_at: datetime, actor: str, limit: int) -> list[JobId]:
        """Give parked jobs that match, and that would come back by themselves, another time to do so."""
        return await self._command("reschedule", which, actor, limit, due_at=due_at)

    async def mark(self, which: JobFilter, mark: str | None, actor: str, limit: int) -> list[JobId]:
        """Put a mark on jobs that match, whatever their state, or take theirs away."""
        return await self._command("mark", which, actor, limit, mark=mark)

    async def quiet(self, worker_ids: Sequence[WorkerId], actor: str, *, quiet: bool) -> list[WorkerId]:
        """Ask living workers to claim nothing more, or to claim again; those that are alive come back."""
        params = {"workers": number_array(worker_ids), "quiet": quiet, "actor": actor, "now": self._now()}
        return [WorkerId(worker_id) for (worker_id,) in await self._pool.rows(self._statements["quiet"], params)]

    async def call_off(self, wire: Wire, job_id: JobId, actor: str, why: str) -> None:
        """Cancel one job, if it is not final, in a transaction that is open."""
        await self._move(wire, "cancel", [job_id], {"actor": actor, "why": why, "now": self._now()})

    async def delete(self, which: JobFilter, actor: str, limit: int) -> list[JobId]:
        """Forget jobs that match, whatever their state; an attempt under way loses its claim.

        Where they have many children that are not final, it takes several transactions: the jobs are cancelled first,
        so that they run no more, then the children some at a time, and what is left goes at the end. If that is cut
        short, the jobs are there to be deleted again.
        """
        ids = await self._large_parents(which, limit)
        if ids:
            await self._pool.transaction(partial(self._settling.set_aside, job_ids=ids))
            some = partial(self._settling.cancel_some, ids, CHILDREN_AT_ONCE)
            while await self._pool.transaction(some) >= CHILDREN_AT_ONCE:
                pass
        return await self._command("delete", JobFilter(ids=tuple(ids)) if ids else which, actor, limit)

    async def _large_parents(self, which: JobFilter, limit: int) -> list[JobId]:
        """The jobs that match, if they have many children that are not final; else none."""
        selection = select(which, _REACH["delete"])
        if not selection.conditions or limit <= 0:
            return []
        find = f"SELECT id {jobs_query(self._views, selection, 'ASC')}"
        found = await self._pool.rows(find, {**selection.params, "limit": limit})
        ids = [JobId(job_id) for (job_id,) in found]
        [[active]] = await self._pool.rows(
            self._statements["active_children"], {"ids": text_array(ids), "most": CHILDREN_AT_ONCE + 1}
        )
        return ids if active > CHILDREN_AT_ONCE else []

    async def purge(self, which: JobFilter, actor: str, limit: int) -> list[JobId]:
        """Delete finished jobs that match, with their attempts."""
        return await self._command("purge", which, actor, limit)

    async def _command(self, name: str, which: JobFilter, actor: str, limit: int, **extra: object) -> list[JobId]:
        selection = select(which, _REACH[name])
        if not selection.conditions or limit <= 0:
            return []
        for conditions in selection.conditions.values():
            conditions.append("p.job_id > %(after)s::uuid")
        find = f"SELECT id {jobs_query(self._views, selection, 'ASC')}"
        params = {"actor": actor, "now": self._now(), **extra}

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
        ends = name in {"cancel", "delete"}
        if ends:
            await self._settling.lock(wire, [(job_id, True) for job_id in ids])
        members = await self._settling.lock_revived(wire, ids) if name == "requeue" else []
        moved: list[JobId] = []
        for _ in range(_TRIES if ends else 1):
            rows = await wire.fetch(self._statements[name], {**params, "ids": text_array(ids)})
            moved += [JobId(job_id) for (job_id,) in rows]
            ids = sorted(set(ids).difference(moved))
            if not ids:
                break
        if members and moved:
            left_alone = set(ids)
            await self._settling.revive(wire, [member for member in members if member not in left_alone])
        elif name == "cancel":
            await self._settling.settle(wire, moved)
        elif name == "delete" and moved:
            await self._settling.bereave(wire, moved)
            await wire.fetch(self._statements["erase"], {"ids": text_array(moved)})
        return moved

    def _now(self) -> datetime | None:
        return self._clock.now() if self._clock else None

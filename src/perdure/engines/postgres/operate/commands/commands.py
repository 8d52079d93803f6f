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
from perdure.domain.operate.audit import By
from perdure.engines.postgres.claims.returned_jobs import ReturnedJobs
from perdure.engines.postgres.database.arrays import number_array, text_array
from perdure.engines.postgres.database.connections import Pool
from perdure.engines.postgres.database.naming import Naming
from perdure.engines.postgres.database.wire import Params, Wire
from perdure.engines.postgres.flows.settling import Settling
from perdure.engines.postgres.operate.commands.audit import by_columns
from perdure.engines.postgres.operate.views.filters import BEFORE_ALL, select
from perdure.engines.postgres.operate.views.insight import jobs_query
from perdure.engines.shared.batch_sizes import CHILDREN_AT_ONCE
from perdure.storage.operate.bulk import BulkParams
from perdure.storage.records import JobFilter

_MOVE_TRIES: Final = 3  # a statement sees no row that was moved while it waited for it: the next one does
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
    """Changes jobs on behalf of an actor, with an audit entry."""

    def __init__(
        self, naming: Naming, pool: Pool, clock: Clock | None, settling: Settling, returns: ReturnedJobs
    ) -> None:
        self._statements = naming.statements("operate/commands/commands.sql")
        self._views = naming.statements("operate/views/insight.sql")
        self._pool = pool
        self._clock = clock
        self._settling = settling
        self._returns = returns

    async def requeue(self, which: JobFilter, by: By, limit: int) -> list[JobId]:
        """Give finished jobs that match a new life, in one step."""
        return await self._command("requeue", which, by, limit)

    async def cancel(self, which: JobFilter, by: By, limit: int) -> list[JobId]:
        """Cancel jobs that match: parked and ready ones at once; a running one is asked to stop."""
        return await self._command("cancel", which, by, limit)

    async def run_now(self, which: JobFilter, by: By, limit: int) -> list[JobId]:
        """Make parked jobs that match ready at once."""
        ready = await self._command("run_now", which, by, limit)
        self._returns.expected = True
        return ready

    async def reschedule(self, which: JobFilter, due_at: datetime, by: By, limit: int) -> list[JobId]:
        """Change when matching parked jobs come back, if they come back by themselves."""
        return await self._command("reschedule", which, by, limit, due_at=due_at)

    async def mark(self, which: JobFilter, mark: str | None, by: By, limit: int) -> list[JobId]:
        """Put a mark on jobs that match, in any state, or remove theirs."""
        return await self._command("mark", which, by, limit, mark=mark)

    async def quiet(self, worker_ids: Sequence[WorkerId], by: By, *, quiet: bool) -> list[WorkerId]:
        """Tell running workers to stop claiming, or to claim again; returns the running ones."""
        params = {"workers": number_array(worker_ids), "quiet": quiet, "now": self._now(), **by_columns(by)}
        return [WorkerId(worker_id) for (worker_id,) in await self._pool.rows(self._statements["quiet"], params)]

    async def call_off(self, wire: Wire, job_id: JobId, by: By) -> None:
        """Cancel one job, if it is not final, in a transaction that is open."""
        await self._move(wire, "cancel", [job_id], {"now": self._now(), **by_columns(by)})

    async def delete(self, which: JobFilter, by: By, limit: int) -> list[JobId]:
        """Delete matching jobs in any state; a running attempt loses its claim."""
        ids = await self.set_aside(which, limit)
        return await self._command("delete", JobFilter(ids=tuple(ids)) if ids else which, by, limit)

    async def set_aside(self, which: JobFilter, limit: int) -> list[JobId]:
        """Before a deletion: if jobs have many children that are not final, those jobs, cancelled with their children.

        It takes several transactions: the jobs are cancelled first, so that they run no more, then the children some at
        a time. If that is cut short, the jobs are there to be deleted again.
        """
        ids = await self._large_parents(which, limit)
        if ids:
            await self._pool.transaction(partial(self._settling.set_aside, job_ids=ids))
            some = partial(self._settling.cancel_some, ids, CHILDREN_AT_ONCE)
            while await self._pool.transaction(some) >= CHILDREN_AT_ONCE:
                pass
        return ids

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

    async def purge(self, which: JobFilter, by: By, limit: int) -> list[JobId]:
        """Delete finished jobs that match, with their attempts."""
        return await self._command("purge", which, by, limit)

    async def within(self, wire: Wire, action: str, params: BulkParams, which: JobFilter, by: By) -> list[JobId]:
        """Apply one of the commands to jobs named by id, in an open transaction."""
        said: dict[str, Params] = {"mark": {"mark": params.mark}, "reschedule": {"due_at": params.due_at}}
        self._returns.expected = self._returns.expected or action == "run_now"
        return await self._work(wire, action, which, by, len(which.ids or ()), said.get(action, {}))

    async def _command(self, name: str, which: JobFilter, by: By, limit: int, **extra: object) -> list[JobId]:
        return await self._pool.transaction(lambda wire: self._work(wire, name, which, by, limit, extra))

    async def _work(self, wire: Wire, name: str, which: JobFilter, by: By, limit: int, extra: Params) -> list[JobId]:
        """Continue after a page with skipped jobs, until there are enough, or no more."""
        selection = select(which, _REACH[name])
        if not selection.conditions or limit <= 0:
            return []
        for conditions in selection.conditions.values():
            conditions.append("p.job_id > %(after)s::uuid")
        find = f"SELECT id {jobs_query(self._views, selection, 'ASC')}"
        params = {"now": self._now(), **by_columns(by), **extra}
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

    async def _move(self, wire: Wire, name: str, ids: list[JobId], params: Params) -> list[JobId]:
        """Move those of these jobs that can be. One that went from place to place just then is looked for again."""
        ends = name in {"cancel", "delete"}
        if ends:
            await self._settling.lock(wire, [(job_id, True) for job_id in ids])
        members = await self._settling.lock_revived(wire, ids) if name == "requeue" else []
        moved: list[JobId] = []
        for _ in range(_MOVE_TRIES if ends else 1):
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
            await self._settling.settle_deleted(wire, moved)
            await wire.fetch(self._statements["erase"], {"ids": text_array(moved)})
        return moved

    def _now(self) -> datetime | None:
        return self._clock.now() if self._clock else None

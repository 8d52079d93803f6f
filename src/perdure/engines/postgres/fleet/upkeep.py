"""Upkeep; any number of processes may do it at once."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Final

from perdure.clock import Clock
from perdure.domain.jobs.ids import JobId
from perdure.domain.jobs.job import Orphan
from perdure.domain.jobs.states import Reason
from perdure.engines.postgres.claims.returned_jobs import ReturnedJobs
from perdure.engines.postgres.database.arrays import text_array
from perdure.engines.postgres.database.connections import Pool
from perdure.engines.postgres.database.encoding import seconds_text
from perdure.engines.postgres.database.naming import Naming
from perdure.engines.postgres.database.rows import Row, orphan_of
from perdure.engines.postgres.database.wire import Asks, Params, Wire
from perdure.engines.postgres.flows.settling import Settling
from perdure.engines.postgres.operate.views.filters import BEFORE_ALL
from perdure.engines.postgres.operate.views.kinds import KindPart
from perdure.engines.shared.batch_sizes import ENTRIES_PER_JOB, INDEX_PIECES_PER_TICK
from perdure.engines.shared.prune_progress import PruneProgress
from perdure.policy.clock_slack import CLOCK_SLACK
from perdure.storage.operate.failure_groups import FAILURES_KEPT
from perdure.storage.records import Keep, Overdue, Promoted

_BESIDES: Final = (  # what each tick of pruning does besides, in this order
    "redate_finished",
    "forget_workers",
    "forget_revoked",
    "forget_holds",
    "forget_fires",
    "forget_marks",
    "forget_failures",
    "forget_groups",
    "forget_bulks",
)


class UpkeepPart:
    """Promotes, finds orphans, prunes."""

    def __init__(
        self,
        naming: Naming,
        pool: Pool,
        clock: Clock | None,
        *,
        settling: Settling,
        returns: ReturnedJobs,
        kinds: KindPart,
    ) -> None:
        self._kinds = kinds
        self._prune_progress = PruneProgress()
        self._statements = naming.statements("fleet/upkeep.sql")
        self._audit = naming.statements("operate/commands/audit.sql")
        self._pool = pool
        self._clock = clock
        self._settling = settling
        self._returns = returns

    async def promote(
        self, limit: int, *, only: JobId | None = None, aside: Collection[JobId] = frozenset()
    ) -> Promoted:
        """Make due parked jobs ready, oldest due first."""
        params: Params = {
            "limit": limit,
            "only": only,
            "aside": text_array(sorted(aside)),
            "key_held": Reason.KEY_HELD.value,
            "now": self._now(),
        }

        async def work(wire: Wire) -> Promoted:
            by_queue = dict(await wire.fetch(self._statements["promote"], params))
            self._returns.expected = self._returns.expected or bool(by_queue)
            if only is not None:
                return Promoted(by_queue)
            await wire.fetch(self._statements["mark_number"], params)
            due = await wire.fetch(self._statements["next_due"], params)
            return Promoted(by_queue, *due[0]) if due else Promoted(by_queue)

        return await self._pool.run(work)

    async def overdue(
        self, limit: int, by: timedelta = timedelta(0), aside: Collection[JobId] = frozenset()
    ) -> list[Overdue]:
        """Parked jobs that are due, oldest due first."""
        params: Params = {"limit": limit, "by": by, "aside": text_array(sorted(aside)), "now": self._now()}
        return [Overdue(*row) for row in await self._pool.rows(self._statements["overdue"], params)]

    async def hasten(self, keys: Collection[str]) -> int:
        """Make the first job that waits for each of these unique keys due now; returns how many."""
        params = {"keys": text_array(sorted(keys)), "now": self._now()}
        return len(await self._pool.rows(self._statements["hasten"], params))

    async def settle_joined(self, job_ids: Collection[JobId] | None = None) -> int:
        """Count the ends of jobs to which children were joined; nearly always there are none, and nothing is locked."""
        if not await self._pool.run(partial(self._settling.ended_joined, job_ids)):
            return 0
        self._returns.expected = True
        return await self._pool.transaction(partial(self._settling.settle_joined, job_ids))

    async def orphans(self, limit: int, after: JobId | None = None) -> list[Orphan]:
        """Claims of workers that are dead or no longer known, by job id, beyond `after`."""
        params = {"limit": limit, "after": after or BEFORE_ALL, "now": self._now()}
        rows = await self._pool.rows(self._statements["orphans"], params)
        if rows:
            await self._kinds.kinds()  # they may be of kinds that this process does not know
        return [orphan_of(row) for row in rows]

    async def last_return(self, queue: str) -> datetime | None:
        """When the last of the queue's jobs comes back that a dead worker held; None: there are none."""
        params = {"queue": queue, "crashed": Reason.CRASHED.value}
        [[last]] = await self._pool.rows(self._statements["last_return"], params)
        found: datetime | None = last
        return found

    async def prune(self, keep: Keep, limit: int) -> int:
        """Delete finished jobs kept long enough; forget workers dead for a day, old nominal times, and spent keys.

        Times from a clock that ran ahead are set to the present.
        """
        pruned = await self._pool.transaction(partial(self._prune, keep, limit))
        params: Params = {"limit": limit, "now": self._now(), "slack": CLOCK_SLACK, "kept": FAILURES_KEPT}

        async def forget(wire: Wire) -> None:
            for statement in _BESIDES:
                await wire.fetch(self._statements[statement], params)
            if keep.audit_trail is not None:
                old = {
                    "kept": seconds_text(keep.audit_trail),
                    "limit": ENTRIES_PER_JOB * limit,
                    "now": self._now(),
                }
                await wire.fetch(self._audit["allow_pruning"], {"kept": old["kept"], "now": old["now"]})
                await wire.fetch(self._audit["forget"], old)

        await self._pool.run(forget)
        return pruned

    async def _prune(self, keep: Keep, limit: int, wire: Asks) -> int:
        own = await self._kinds.own_times(wire)
        if not own:
            spans = keep.by_state
            params: Params = {
                "states": text_array([state for state, _ in spans]),
                "seconds": text_array([seconds_text(kept) for _, kept in spans]),
                "limit": limit,
                "now": self._now(),
            }
            return await self._forget(wire, await wire.fetch(self._statements["old"], params))
        self._prune_progress.begin(frozenset(own))
        pruned = 0
        for kind, times in own.items():
            for state, kept in times.by_state:
                params = {"kind": kind, "state": state.value, "seconds": kept.total_seconds(), "now": self._now()}
                found = await wire.fetch(self._statements["old_of_kind"], {**params, "limit": limit - pruned})
                pruned += await self._forget(wire, found)
        for state, kept in keep.by_state:
            for (queue,) in await wire.fetch(self._statements["finished_queues"], {"state": state.value}):
                params = {"state": state.value, "queue": queue, "seconds": kept.total_seconds(), "now": self._now()}
                pruned += await self._forget_beside_kinds(wire, own, params, limit - pruned)
        return pruned

    async def _forget_beside_kinds(self, wire: Asks, own: Collection[str], params: Params, limit: int) -> int:
        """If some kinds have their own retention, their jobs are marked as such, and passed over."""
        state, queue = str(params["state"]), str(params["queue"])
        ids: list[Row] = []
        theirs: list[tuple[str, str]] = []
        for _ in range(INDEX_PIECES_PER_TICK):
            at, after_id = self._prune_progress.place(state, queue) or (None, BEFORE_ALL)
            wanted = limit - len(ids)
            place: Params = {**params, "after": at, "after_id": after_id, "limit": wanted}
            rows = await wire.fetch(self._statements["old_with_kind"], place)
            for job_id, finished_at, kind, kept_as in rows:
                self._prune_progress.passed(state, queue, (finished_at, job_id))
                if kind not in own:
                    ids.append((job_id,))
                elif kept_as is None:
                    theirs.append((job_id, kind))
            if len(rows) < wanted or len(ids) >= limit:
                break
        if theirs:
            noted = {"ids": text_array([one for one, _ in theirs]), "kinds": text_array([kind for _, kind in theirs])}
            await wire.fetch(self._statements["note_kinds"], noted)
        return await self._forget(wire, ids)

    async def _forget(self, wire: Asks, found: Sequence[Row]) -> int:
        if not found:
            return 0
        ids = text_array([job_id for (job_id,) in found])
        [[forgotten]] = await wire.fetch(self._statements["forget_jobs"], {"ids": ids})
        return int(forgotten)

    def _now(self) -> datetime | None:
        return self._clock.now() if self._clock else None

"""What keeps the house in order; any number of processes may do it at once."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime, timedelta
from functools import partial
from typing import Final

from perdure.clock import Clock
from perdure.domain.ids import JobId
from perdure.domain.job import Orphan
from perdure.domain.states import JobState, Reason
from perdure.engines.postgres.arrays import text_array
from perdure.engines.postgres.connections import Pool
from perdure.engines.postgres.encoding import seconds_text
from perdure.engines.postgres.filters import BEFORE_ALL
from perdure.engines.postgres.naming import Naming
from perdure.engines.postgres.returns import Returns
from perdure.engines.postgres.rows import orphan_of
from perdure.engines.postgres.settling import PostgresSettling
from perdure.engines.postgres.wire import Params, Wire
from perdure.storage.records import Keep, Overdue, Promoted

_ENTRIES_PER_JOB: Final = 10


class PostgresUpkeep:
    """Promotes, finds orphans, prunes."""

    def __init__(
        self, naming: Naming, pool: Pool, clock: Clock | None, settling: PostgresSettling, returns: Returns
    ) -> None:
        self._statements = naming.statements("upkeep.sql")
        self._audit = naming.statements("audit.sql")
        self._pool = pool
        self._clock = clock
        self._settling = settling
        self._returns = returns

    async def promote(
        self, limit: int, *, only: JobId | None = None, aside: Collection[JobId] = frozenset()
    ) -> Promoted:
        """Make parked jobs ready whose time has come, oldest due first."""
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

    async def overdue(self, limit: int, by: timedelta, aside: Collection[JobId]) -> list[Overdue]:
        """Parked jobs whose time has come, oldest due first."""
        params: Params = {"limit": limit, "by": by, "aside": text_array(sorted(aside)), "now": self._now()}
        return [Overdue(*row) for row in await self._pool.rows(self._statements["overdue"], params)]

    async def hasten(self, keys: Collection[str]) -> int:
        """Let the first job that waits for each of these unique keys look again at once; how many."""
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
        return [orphan_of(row) for row in await self._pool.rows(self._statements["orphans"], params)]

    async def last_return(self, queue: str) -> datetime | None:
        """When the last of the queue's jobs comes back that a dead worker held; None: there are none."""
        params = {"queue": queue, "crashed": Reason.CRASHED.value}
        [[last]] = await self._pool.rows(self._statements["last_return"], params)
        found: datetime | None = last
        return found

    async def prune(self, keep: Keep, limit: int) -> int:
        """Delete finished jobs kept long enough; forget workers dead for a day, old nominal times, and spent keys."""
        kept = {
            JobState.SUCCEEDED: keep.succeeded,
            JobState.CANCELLED: keep.cancelled,
            JobState.DEAD: keep.dead,
        }
        spans = {state: seconds_text(span) for state, span in kept.items() if span is not None}
        params: Params = {
            "states": text_array(list(spans)),
            "seconds": text_array(list(spans.values())),
            "limit": limit,
            "now": self._now(),
        }

        async def work(wire: Wire) -> int:
            [[pruned]] = await wire.fetch(self._statements["prune"], params)
            await wire.fetch(self._statements["forget_workers"], params)
            await wire.fetch(self._statements["forget_revoked"], params)
            await wire.fetch(self._statements["forget_holds"], params)
            await wire.fetch(self._statements["forget_fires"], params)
            if keep.audit_trail is not None:
                old = {"kept": seconds_text(keep.audit_trail), "limit": _ENTRIES_PER_JOB * limit, "now": self._now()}
                await wire.fetch(self._audit["forget"], old)
            await wire.fetch(self._statements["forget_marks"], params)
            return int(pruned)

        return await self._pool.run(work)

    def _now(self) -> datetime | None:
        return self._clock.now() if self._clock else None

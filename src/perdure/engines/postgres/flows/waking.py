"""Releases held jobs.

Any number of them may be released at once, so they come back in batches, each in its own transaction.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime

from perdure.clock import Clock
from perdure.domain.jobs.ids import JobId
from perdure.domain.jobs.states import Reason
from perdure.engines.postgres.claims.returned_jobs import ReturnedJobs
from perdure.engines.postgres.database.arrays import text_array
from perdure.engines.postgres.database.connections import Pool
from perdure.engines.postgres.database.naming import Naming
from perdure.engines.postgres.database.wire import Params
from perdure.engines.postgres.operate.views.filters import BEFORE_ALL
from perdure.engines.shared.batch_sizes import WOKEN_AT_ONCE


class Waker:
    """Makes held jobs ready, and rings for their queues."""

    def __init__(
        self,
        naming: Naming,
        pool: Pool,
        clock: Clock | None,
        ring: Callable[[Iterable[str]], None],
        returns: ReturnedJobs,
    ) -> None:
        self._statements = naming.statements("flows/waking.sql")
        self._pool = pool
        self._clock = clock
        self._ring = ring
        self._returns = returns

    async def wake(self, ids: Sequence[JobId], held_for: Reason) -> int:
        """Wake those of these jobs that are still held for this reason, in this order; how many are ready."""
        if not ids:
            return 0
        params: Params = {
            "ids": text_array(ids),
            "held_for": held_for.value,
            "key_held": Reason.KEY_HELD.value,
            "now": self._now(),
        }
        counts = dict(await self._pool.rows(self._statements["wake"], params))
        self._returns.expected = self._returns.expected or bool(counts)
        self._ring(counts)
        return sum(counts.values())

    async def wake_held(self, reason: Reason, openings: Sequence[str]) -> int:
        """Wake the jobs held for a reason whose note begins in one of these ways; how many are ready."""
        woken, after = 0, JobId(BEFORE_ALL)
        while True:
            which = {
                "reason": reason.value,
                "openings": text_array(openings),
                "after": after,
                "limit": WOKEN_AT_ONCE,
            }
            ids = [JobId(job_id) for (job_id,) in await self._pool.rows(self._statements["held"], which)]
            woken += await self.wake(ids, reason)
            if len(ids) < WOKEN_AT_ONCE:
                return woken
            after = ids[-1]

    def _now(self) -> datetime | None:
        return self._clock.now() if self._clock else None

"""Makes parked jobs ready when they are due.

If the store refuses a batch, its jobs are promoted one by one, so that one bad row cannot hold up the others. A job
that cannot be made ready is reported and set aside: it is left out of the batches for a minute, and then retried.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from typing import Final

from perdure.domain.jobs.ids import JobId
from perdure.errors import SchemaError, StoreRefused, StoreUnavailable
from perdure.events import Emitter, PromotionFailed
from perdure.lifecycle.loops.loop import Loop
from perdure.storage.port import Store
from perdure.storage.records import Promoted

_JOBS_PER_CALL: Final = 1_000
_SHORTEST_WAIT: Final = timedelta(milliseconds=5)
_SET_ASIDE_SECONDS: Final = 60.0  # seconds
_OF_NO_ROW: Final = (StoreUnavailable, StoreRefused, SchemaError)


class Promoter(Loop[Promoted]):
    """Looks every second, and sooner when it knows that a job is due sooner."""

    name = "promoter"
    interval = timedelta(seconds=1)

    def __init__(
        self,
        store: Store,
        emitter: Emitter,
        on_ready: Callable[[], None],
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(emitter)
        self._store = store
        self._on_ready = on_ready
        self._monotonic = monotonic
        self._aside: dict[JobId, float] = {}  # until when

    async def tick(self) -> Promoted:
        """Promote one batch, and notify the workers; then wake parents that wait for a job which is not their child."""
        now = self._monotonic()
        self._aside = {job_id: until for job_id, until in self._aside.items() if until > now}
        try:
            promoted = await self._store.promote(_JOBS_PER_CALL, aside=self._aside.keys())
        except _OF_NO_ROW:
            raise
        except Exception:  # noqa: BLE001 - one bad job must not keep the others from becoming ready
            promoted = await self._promote_each()
        if promoted.by_queue:
            self._store.ring(promoted.by_queue)
            self._on_ready()
        if await self._store.settle_joined():
            self._on_ready()
        return promoted

    def next_wait(self, did: Promoted) -> timedelta:
        """At once while there is a backlog, else until the next known due time.

        A due job that was not promoted is left to another process, or cannot be promoted: it is not retried at once.
        """
        if did.total >= _JOBS_PER_CALL:
            return timedelta(0)
        if did.next_in is None or (did.next_in <= timedelta(0) and not did.total):
            return self.interval
        return min(self.interval, max(did.next_in, _SHORTEST_WAIT))

    async def _promote_each(self) -> Promoted:
        """The same batch, job by job; those that cannot be made ready are set aside."""
        by_queue: Counter[str] = Counter()
        for job in await self._store.overdue(_JOBS_PER_CALL, aside=self._aside.keys()):
            try:
                promoted = await self._store.promote(1, only=job.job_id)
            except _OF_NO_ROW:
                raise
            except Exception as error:  # noqa: BLE001 - it is reported
                self._aside[job.job_id] = self._monotonic() + _SET_ASIDE_SECONDS
                self.emitter.emit(PromotionFailed(job.job_id, f"{type(error).__name__}: {error}"))
            else:
                by_queue.update(promoted.by_queue)
        return Promoted(dict(by_queue))

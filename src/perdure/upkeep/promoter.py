"""Makes parked jobs ready when their time has come.

If the store refuses a batch, its jobs are promoted one by one, so that one bad row cannot hold up the others. A job
that cannot be made ready is reported and set aside: it is left out of the batches for a minute, and then tried again.
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

_BATCH: Final = 1_000
_SHORTEST: Final = timedelta(milliseconds=5)
_ASIDE_FOR: Final = 60.0  # seconds
_OF_NO_ROW: Final = (StoreUnavailable, StoreRefused, SchemaError)


class Promoter(Loop[Promoted]):
    """Looks every second, and sooner when it knows that a job falls due sooner."""

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
        """Promote one batch, and tell the workers; then wake parents that wait for a job which is not their child."""
        now = self._monotonic()
        self._aside = {job_id: until for job_id, until in self._aside.items() if until > now}
        try:
            promoted = await self._store.promote(_BATCH, aside=self._aside.keys())
        except _OF_NO_ROW:
            raise
        except Exception:  # noqa: BLE001 - whatever is wrong with one job, the others become ready
            promoted = await self._promote_each()
        if promoted.by_queue:
            self._store.ring(promoted.by_queue)
            self._on_ready()
        if await self._store.settle_joined():
            self._on_ready()
        return promoted

    def next_wait(self, did: Promoted) -> timedelta:
        """At once while there is a backlog, else until the next due time that is known.

        A job that is due and was not promoted is left to somebody else, or cannot be promoted: it is not rushed.
        """
        if did.total >= _BATCH:
            return timedelta(0)
        if did.next_in is None or (did.next_in <= timedelta(0) and not did.total):
            return self.interval
        return min(self.interval, max(did.next_in, _SHORTEST))

    async def _promote_each(self) -> Promoted:
        """The same batch, job by job; those that cannot be made ready are set aside."""
        by_queue: Counter[str] = Counter()
        for job in await self._store.overdue(_BATCH, aside=self._aside.keys()):
            try:
                promoted = await self._store.promote(1, only=job.job_id)
            except _OF_NO_ROW:
                raise
            except Exception as error:  # noqa: BLE001 - it is reported
                self._aside[job.job_id] = self._monotonic() + _ASIDE_FOR
                self.emitter.emit(PromotionFailed(job.job_id, f"{type(error).__name__}: {error}"))
            else:
                by_queue.update(promoted.by_queue)
        return Promoted(dict(by_queue))

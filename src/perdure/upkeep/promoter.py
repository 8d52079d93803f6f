"""Makes parked jobs ready when their time has come."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

from perdure.events import Emitter
from perdure.lifecycle.loop import Loop
from perdure.storage.port import Store
from perdure.storage.records import Promoted

_BATCH = 1_000
_SHORTEST = timedelta(milliseconds=5)


class Promoter(Loop[Promoted]):
    """Looks every second, and sooner when it knows that a job falls due sooner."""

    name = "promoter"
    interval = timedelta(seconds=1)

    def __init__(self, store: Store, emitter: Emitter, on_ready: Callable[[], None]) -> None:
        super().__init__(emitter)
        self._store = store
        self._on_ready = on_ready

    async def tick(self) -> Promoted:
        """Promote one batch, and tell the workers; wake parents that wait for a job which is not their child."""
        if await self._store.settle_joined():
            self._on_ready()
        promoted = await self._store.promote(_BATCH)
        if promoted.by_queue:
            self._store.ring(promoted.by_queue)
            self._on_ready()
        return promoted

    def next_wait(self, did: Promoted) -> timedelta:
        """At once while there is a backlog, else until the next due time that is known."""
        if did.total >= _BATCH:
            return timedelta(0)
        if did.next_in is None:
            return self.interval
        return min(self.interval, max(did.next_in, _SHORTEST))

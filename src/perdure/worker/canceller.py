"""Notices that somebody wants a running job called off."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

from perdure.domain.ids import WorkerId
from perdure.events import Emitter
from perdure.lifecycle.loop import Loop
from perdure.storage.port import WorkerStore
from perdure.storage.records import CancelRequest


class Canceller(Loop[int]):
    """Looks every second."""

    name = "canceller"
    interval = timedelta(seconds=1)

    def __init__(self, store: WorkerStore, emitter: Emitter, stop: Callable[[CancelRequest], None]) -> None:
        super().__init__(emitter)
        self._store = store
        self._stop_job = stop
        self.worker_id: WorkerId | None = None

    async def tick(self) -> int:
        """Pass on every request; how many there were."""
        if self.worker_id is None:
            return 0
        requests = await self._store.cancel_requests(self.worker_id)
        for request in requests:
            self._stop_job(request)
        return len(requests)

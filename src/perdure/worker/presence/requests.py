"""Receives requests of operators: to cancel a running job, or to quiet the worker."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

from perdure.domain.jobs.ids import WorkerId
from perdure.events import Emitter
from perdure.lifecycle.loops.loop import Loop
from perdure.storage.fleet.workers import WorkerStore
from perdure.storage.records import CancelRequest


class OperatorRequests(Loop[int]):
    """Checks every second."""

    name = "canceller"
    interval = timedelta(seconds=1)

    def __init__(
        self,
        store: WorkerStore,
        emitter: Emitter,
        stop: Callable[[CancelRequest], None],
        be_quiet: Callable[[bool], None],
    ) -> None:
        super().__init__(emitter)
        self._store = store
        self._stop_job = stop
        self._be_quiet = be_quiet
        self.worker_id: WorkerId | None = None

    async def tick(self) -> int:
        """Pass on every request; returns their number."""
        if (worker_id := self.worker_id) is None:
            return 0
        requests = await self._store.cancel_requests(worker_id)
        for request in requests:
            self._stop_job(request)
        wants_quiet = await self._store.wants_quiet(worker_id)
        if worker_id == self.worker_id:  # not lost meanwhile
            self._be_quiet(wants_quiet)
        return len(requests)

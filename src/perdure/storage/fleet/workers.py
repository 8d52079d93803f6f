"""Registration and heartbeats of workers."""

from __future__ import annotations

from typing import Protocol

from perdure.domain.jobs.ids import WorkerId
from perdure.domain.worker import NewWorker, Phase, WorkerView
from perdure.storage.records import (
    CancelRequest,
)


class WorkerStore(Protocol):
    """Registration and heartbeats of workers."""

    async def register(self, worker: NewWorker) -> WorkerId:
        """Register a worker; its lease begins now. Ids are never reused."""

    async def beat(self, worker_id: WorkerId) -> bool:
        """Renew the worker's lease. False: it has been declared dead, and all its leases are lost."""

    async def retire(self, worker_id: WorkerId) -> None:
        """Retire a worker that stops cleanly; leases that it still holds can be rescued."""

    async def report(self, worker_id: WorkerId, phase: Phase) -> None:
        """Store the worker's phase."""

    async def wants_quiet(self, worker_id: WorkerId) -> bool:
        """Whether this worker was told to stop claiming for now."""

    async def cancel_requests(self, worker_id: WorkerId) -> list[CancelRequest]:
        """The jobs of this worker whose cancellation was requested, and why; also those already taken from it."""

    async def workers(self) -> list[WorkerView]:
        """All workers that are not pruned yet, running ones first."""

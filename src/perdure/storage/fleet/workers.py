"""How workers show that they live."""

from __future__ import annotations

from typing import Protocol

from perdure.domain.jobs.ids import WorkerId
from perdure.domain.worker import NewWorker, Phase, WorkerView
from perdure.storage.records import (
    CancelRequest,
)


class WorkerStore(Protocol):
    """How workers show that they live."""

    async def register(self, worker: NewWorker) -> WorkerId:
        """Enter a worker; its lease begins now. Ids are never used again."""

    async def beat(self, worker_id: WorkerId) -> bool:
        """Renew the worker's lease. False: it has been declared dead, and everything it holds is lost."""

    async def retire(self, worker_id: WorkerId) -> None:
        """Declare a worker gone that stops in good order; whatever it still holds is free to be rescued."""

    async def report(self, worker_id: WorkerId, phase: Phase) -> None:
        """Show what the worker is about."""

    async def wants_quiet(self, worker_id: WorkerId) -> bool:
        """Whether somebody has asked this worker to claim nothing more for now."""

    async def cancel_requests(self, worker_id: WorkerId) -> list[CancelRequest]:
        """The jobs held by this worker that somebody wants called off, and why; also those already taken from it."""

    async def workers(self) -> list[WorkerView]:
        """All workers not yet forgotten, the living first."""

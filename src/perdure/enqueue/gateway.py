"""What jobs and handles need of their app, so that neither has to know it."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any, Protocol, TypeVar

from perdure.domain.flows.flow import Progress
from perdure.domain.jobs.ids import JobId
from perdure.domain.jobs.job import JobView, NewJob, Receipt
from perdure.kinds.kind import Registry

R = TypeVar("R")


class Gateway(Protocol):
    """What a job needs of its app."""

    payload_limit: int
    kinds: Registry

    def check_queue(self, queue: str) -> None:
        """Refuse a queue that the app does not know."""

    async def put(self, job: NewJob, connection: Any) -> Receipt:
        """Store one job, through the caller's own connection if there is one."""

    def put_sync(self, job: NewJob, connection: Any) -> Receipt:
        """The same, for callers without an event loop."""

    def run_sync(self, coroutine: Coroutine[Any, Any, R]) -> R:
        """Run a coroutine to its end, for callers without an event loop."""

    async def view(self, job_id: JobId) -> JobView | None:
        """One job as it stands."""

    async def final(self, job_id: JobId) -> JobView:
        """One job, as soon as it is final."""

    async def progress(self, job_id: JobId) -> Progress | None:
        """How far a job was when it last said so."""

"""The part of the app that jobs and handles use, so that they do not depend on it."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any, Protocol, TypeVar

from perdure.domain.flows.flow import Progress
from perdure.domain.jobs.ids import JobId
from perdure.domain.jobs.job import JobView, NewJob, Receipt
from perdure.kinds.kind import Registry

R = TypeVar("R")


class Gateway(Protocol):
    """What a job needs from its app."""

    payload_limit: int
    kinds: Registry

    def check_queue(self, queue: str) -> None:
        """Refuse a queue that the app does not declare."""

    async def put(self, job: NewJob, connection: Any) -> Receipt:
        """Store one job, through the caller's own connection if given."""

    def put_sync(self, job: NewJob, connection: Any) -> Receipt:
        """Blocking version of `put`."""

    def run_sync(self, coroutine: Coroutine[Any, Any, R]) -> R:
        """Run a coroutine to its end, for callers without an event loop."""

    async def view(self, job_id: JobId) -> JobView | None:
        """One job in its current state."""

    async def final(self, job_id: JobId) -> JobView:
        """Wait until the job is final, and return it."""

    async def progress(self, job_id: JobId) -> Progress | None:
        """The last progress that the job reported."""

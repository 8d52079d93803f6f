"""Wake-ups."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Iterable
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from perdure.domain.jobs.ids import JobId


class SignalStore(Protocol):
    """Wake-ups: hints that reduce latency, never the only way to notice something."""

    def ring(self, queues: Iterable[str]) -> None:
        """Notify workers, soon and without waiting, that these queues have work."""

    def wakeups(self) -> AbstractAsyncContextManager[AsyncIterator[None]]:
        """Listen: each item means "look now". Items that pile up become one; a lost connection is reopened silently."""

    def await_ends(self, job_ids: Collection[JobId]) -> None:
        """Ask workers, soon and without waiting, to notify when these jobs end; they do so for 30 seconds."""

    def ring_ended(self, job_ids: Iterable[JobId]) -> None:
        """Notify, soon and without waiting, about those of these ended jobs that are known to be awaited."""

    def ends(self) -> AbstractAsyncContextManager[AsyncIterator[None]]:
        """Listen for the ends of awaited jobs: each item means that one may have ended. Pending items become one."""

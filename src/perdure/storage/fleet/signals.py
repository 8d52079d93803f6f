"""Wake-ups."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Iterable
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from perdure.domain.jobs.ids import JobId


class SignalStore(Protocol):
    """Wake-ups: hints that make things fast, never the only way a thing is noticed."""

    def ring(self, queues: Iterable[str]) -> None:
        """Tell workers, soon and without waiting, that these queues have work."""

    def wakeups(self) -> AbstractAsyncContextManager[AsyncIterator[None]]:
        """Listen: each item means "look now". Items that pile up are one; a lost connection is mended quietly."""

    def await_ends(self, job_ids: Collection[JobId]) -> None:
        """Ask workers, soon and without waiting, to ring when these jobs end; they forget it after 30 seconds."""

    def ring_ended(self, job_ids: Iterable[JobId]) -> None:
        """Ring, soon and without waiting, for those of these ended jobs that are known to be awaited."""

    def ends(self) -> AbstractAsyncContextManager[AsyncIterator[None]]:
        """Listen for the ends of awaited jobs: each item means that one may have ended. Items that pile up are one."""

"""What operators change."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from perdure.domain.jobs.ids import JobId, WorkerId
from perdure.storage.records import (
    JobFilter,
)


class CommandStore(Protocol):
    """What operators change. Each command writes who did what to the audit trail in the same transaction."""

    async def requeue(self, which: JobFilter, actor: str, limit: int) -> list[JobId]:
        """Give finished jobs that match a new life, in one step: counts 0, no error, ready now (A7).

        A job whose unique key another one holds is left alone, as are jobs that are not final. A child that its family
        counts as failed is not counted any more: the family is settled when its new life has ended. One that it counts
        as succeeded stays so.
        """

    async def cancel(self, which: JobFilter, actor: str, why: str, limit: int) -> list[JobId]:
        """Call off jobs that match: parked and ready ones at once; a running one is asked to stop. `why` is kept.

        Children that are not final are cancelled with their parent, where their family says so.
        """

    async def run_now(self, which: JobFilter, actor: str, limit: int) -> list[JobId]:
        """Make parked jobs that match ready at once: what they wait for by the clock is over.

        Such are sleeps, polls and the waits between tries of a step; limits of waits for events and children stay.
        """

    async def reschedule(self, which: JobFilter, due_at: datetime, actor: str, limit: int) -> list[JobId]:
        """Give parked jobs that match, and that would come back by themselves, another time to do so.

        What they wait for by the clock, as with `run_now`, is waited for until then at most.
        """

    async def mark(self, which: JobFilter, mark: str | None, actor: str, limit: int) -> list[JobId]:
        """Put this mark on jobs that match, whatever their state; None takes theirs away. A requeue does that too."""

    async def quiet(self, worker_ids: Sequence[WorkerId], actor: str, *, quiet: bool) -> list[WorkerId]:
        """Ask living workers to claim nothing more, or to claim again; those that are alive come back."""

    async def delete(self, which: JobFilter, actor: str, limit: int) -> list[JobId]:
        """Forget jobs that match, whatever their state; an attempt under way loses its claim.

        Children that are not final are cancelled: "parent job deleted". Finished children stay.
        """

    async def purge(self, which: JobFilter, actor: str, limit: int) -> list[JobId]:
        """Delete finished jobs that match, with their attempts."""

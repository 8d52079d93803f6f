"""Commands of operators."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from perdure.domain.jobs.ids import JobId, WorkerId
from perdure.domain.jobs.job import NewJob, Receipt
from perdure.domain.operate.audit import By
from perdure.storage.records import (
    JobFilter,
)


class CommandStore(Protocol):
    """What operators change. Each command writes who did what, why and from where in the same transaction."""

    async def enqueue(self, job: NewJob, by: By) -> Receipt:
        """Store one job that an operator enqueued by hand, with an audit entry unless it exists already."""

    async def requeue(self, which: JobFilter, by: By, limit: int) -> list[JobId]:
        """Requeue matching finished jobs, in one step: counts 0, no error, ready now (A7).

        A job whose unique key another one holds is skipped, as are jobs that are not final. A child that its family
        counts as failed is not counted any more: the family is settled when the requeued child ends. One that it counts
        as succeeded stays so.
        """

    async def cancel(self, which: JobFilter, by: By, limit: int) -> list[JobId]:
        """Cancel matching jobs: parked and ready ones at once; a running one is asked to stop. `by.why` is stored.

        Children that are not final are cancelled with their parent, if their family says so.
        """

    async def run_now(self, which: JobFilter, by: By, limit: int) -> list[JobId]:
        """Make matching parked jobs ready at once: their waits by the clock are over.

        These are sleeps, polls and the waits between tries of a step; time limits of waits for events and children
        stay.
        """

    async def reschedule(self, which: JobFilter, due_at: datetime, by: By, limit: int) -> list[JobId]:
        """Change when matching parked jobs come back, if they come back by themselves.

        Their waits by the clock, as with `run_now`, last until then at most.
        """

    async def mark(self, which: JobFilter, mark: str | None, by: By, limit: int) -> list[JobId]:
        """Set this mark on matching jobs in any state; None removes theirs. A requeue removes it too."""

    async def quiet(self, worker_ids: Sequence[WorkerId], by: By, *, quiet: bool) -> list[WorkerId]:
        """Tell running workers to stop claiming, or to claim again; returns the running ones."""

    async def delete(self, which: JobFilter, by: By, limit: int) -> list[JobId]:
        """Delete matching jobs in any state; a running attempt loses its claim.

        Children that are not final are cancelled: "parent job deleted". Finished children stay.
        """

    async def purge(self, which: JobFilter, by: By, limit: int) -> list[JobId]:
        """Delete finished jobs that match, with their attempts."""

"""Intake: how jobs are stored."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from perdure.domain.jobs.job import NewJob, Receipt


class IntakeStore(Protocol):
    """Stores new jobs."""

    async def insert(self, jobs: Sequence[NewJob]) -> list[Receipt]:
        """Store all these jobs in one transaction and answer in order.

        A job whose id is already stored is EXISTING, and does not change. A job with a unique key that another job
        holds is EXISTING and answered with that job's id (REJECT raises DuplicateJobError for the whole batch; REPLACE:
        see OnConflict). Two of one batch with the same key are one job. A job with a delay, or a run_at later than the
        database's now, is scheduled; any other is ready.
        """


class BorrowingStore(Protocol):
    """Stores new jobs through a connection of the caller, as part of the caller's own transaction."""

    def through(self, connection: object, *, blocking: bool = False) -> IntakeStore:
        """Intake through this connection; the store need not be open, and is not opened.

        Its `insert` neither commits nor rolls back what the caller began: the jobs are stored when the caller commits,
        or not at all, and if it raises, the transaction continues as if it had not been called. On a connection in
        autocommit mode the jobs are stored at once, all or none. A connection that does not lead to this store's
        database is refused by name.
        `blocking`: an async connection is refused, and `insert` never waits for an event loop.
        """

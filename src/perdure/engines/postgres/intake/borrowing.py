"""Intake through a connection of the caller, in the caller's own transaction.

The plan is the store's own, run inside a savepoint. Wake-ups go out with the caller's commit, one for each queue: it is
the only time at which the workers can be notified. The transaction should be READ COMMITTED: a stricter one may be
refused by the server when two callers want the same unique key at once, as with any other row.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from perdure.clock import Clock
from perdure.domain.jobs.job import Intake, NewJob, Receipt
from perdure.engines.borrowed.atomically import atomically
from perdure.engines.borrowed.connection import Borrowed, Database
from perdure.engines.borrowed.recognise import CallerConnection
from perdure.engines.postgres.database.faults import blame
from perdure.engines.postgres.database.naming import Naming
from perdure.engines.postgres.intake.insertion import follow, plan_insert
from perdure.errors import ArgumentError


class BorrowingPart:
    """Intake through connections of callers; needs no open store."""

    def __init__(self, naming: Naming, clock: Clock | None) -> None:
        self._naming = naming
        self._statements = naming.statements("intake/intake.sql")
        self._clock = clock

    def through(self, connection: Any, *, blocking: bool = False) -> ThroughConnection:
        """Intake through this connection; refuses a value that is no connection."""
        return ThroughConnection(self, CallerConnection(connection, blocking=blocking))

    async def insert(self, borrowed: Borrowed, jobs: Sequence[NewJob]) -> list[Receipt]:
        """Follow the plan, and announce what is new with the transaction."""
        now = self._clock.now() if self._clock else None
        receipts = await follow(plan_insert(self._statements, jobs, now), borrowed.run, borrowed.pause)
        for queue in sorted({job.queue for job, receipt in zip(jobs, receipts, strict=True) if _changed(receipt)}):
            await borrowed.run(self._statements["notify"], {"channel": self._naming.channel, "queue": queue})
        return receipts


class ThroughConnection:
    """Intake through one connection of a caller."""

    def __init__(self, borrowing: BorrowingPart, connection: CallerConnection) -> None:
        self._borrowing = borrowing
        self._connection = connection

    async def insert(self, jobs: Sequence[NewJob]) -> list[Receipt]:
        """Store all these jobs or none, as part of the caller's transaction."""
        borrowed = await self._connection.borrow()
        if borrowed.database is not Database.POSTGRESQL:
            raise ArgumentError(
                "connection", f"leads to {borrowed.database}, and this app's jobs are in PostgreSQL: use one to there"
            )
        if not jobs:
            return []
        try:
            return await atomically(borrowed, "BEGIN", lambda: self._borrowing.insert(borrowed, jobs))
        except Exception as error:
            if (blamed := blame(error)) is not None:
                raise blamed from error
            raise


def _changed(receipt: Receipt) -> bool:
    return receipt.intake is not Intake.EXISTING

"""Jobs that an operator enqueues by hand, with an audit entry in the same transaction."""

from __future__ import annotations

from perdure.domain.jobs.job import NewJob, Receipt
from perdure.domain.operate.audit import By
from perdure.engines.shared.operate.audit_details import enqueued
from perdure.engines.sqlite.database.database import Database
from perdure.engines.sqlite.database.transaction import Transaction
from perdure.engines.sqlite.intake.intake import IntakePart
from perdure.engines.sqlite.operate.commands.audit import Audit


class EnqueueingPart:
    """Enqueueing by hand."""

    def __init__(self, database: Database, intake: IntakePart) -> None:
        self._database = database
        self._intake = intake
        self._audit = Audit(database)

    async def enqueue(self, job: NewJob, by: By) -> Receipt:
        """Store one job."""

        def act(transaction: Transaction) -> Receipt:
            [receipt] = self._intake.insert_within(transaction, [job])
            if (note := enqueued(job, receipt)) is not None:
                self._audit.write(transaction, by, note)
            return receipt

        return await self._database.write(act)

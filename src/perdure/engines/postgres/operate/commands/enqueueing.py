"""Jobs that an operator enqueues by hand, with an audit entry in the same transaction."""

from __future__ import annotations

from perdure.clock import Clock
from perdure.domain.jobs.job import NewJob, Receipt
from perdure.domain.operate.audit import By
from perdure.engines.postgres.database.connections import Pool
from perdure.engines.postgres.database.naming import Naming
from perdure.engines.postgres.database.wire import Wire
from perdure.engines.postgres.intake.intake import IntakePart
from perdure.engines.postgres.operate.commands.audit import Audit
from perdure.engines.shared.operate.audit_details import enqueued


class EnqueueingPart:
    """Enqueueing by hand."""

    def __init__(self, naming: Naming, pool: Pool, clock: Clock | None, intake: IntakePart) -> None:
        self._pool = pool
        self._intake = intake
        self._audit = Audit(naming, clock)

    async def enqueue(self, job: NewJob, by: By) -> Receipt:
        """Store one job."""

        async def work(wire: Wire) -> Receipt:
            [receipt] = await self._intake.insert_within(wire, [job])
            if (note := enqueued(job, receipt)) is not None:
                await self._audit.write(wire, by, note)
            return receipt

        return await self._pool.transaction(work)

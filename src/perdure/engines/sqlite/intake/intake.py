"""Intake: stores new jobs."""

from __future__ import annotations

from collections.abc import Sequence

from perdure.domain.jobs.job import NewJob, Receipt
from perdure.engines.sqlite.database.database import Database
from perdure.engines.sqlite.database.plan import Ask, Do, Plan, follow
from perdure.engines.sqlite.database.transaction import Transaction
from perdure.engines.sqlite.intake.insertion import insert_plain, is_plain, plan_insert
from perdure.engines.sqlite.lanes.single_writes import NotNow

__all__ = ["Ask", "Do", "IntakePart", "Plan", "plan_insert"]


class IntakePart:
    """Intake of the store."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._sql = database.statements("intake/intake.sql")

    async def insert(self, jobs: Sequence[NewJob]) -> list[Receipt]:
        """Store jobs; a single one is written at once if possible (see `single_writes`)."""
        if len(jobs) == 1:
            try:
                return self._database.write_now(lambda transaction: self.insert_within(transaction, jobs))
            except NotNow:
                pass
        return await self._database.write(lambda transaction: self.insert_within(transaction, jobs))

    def insert_within(
        self, transaction: Transaction, jobs: Sequence[NewJob], *, beside_holder: bool = False
    ) -> list[Receipt]:
        """Run the plan of insertion in a transaction of the store's own, or do without one."""
        if len(jobs) == 1 and is_plain(jobs[0]):
            return [insert_plain(transaction, self._sql, jobs[0])]
        plan = plan_insert(self._sql, jobs, transaction.now, transaction.turns, beside_holder=beside_holder)
        return follow(transaction, plan)

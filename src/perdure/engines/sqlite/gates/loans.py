"""Loans of gates to workers."""

from __future__ import annotations

from collections.abc import Collection
from datetime import timedelta

from perdure.domain.gate import Loan, LoanKey
from perdure.domain.jobs.ids import WorkerId
from perdure.engines.shared.database.instants import span
from perdure.engines.sqlite.database.database import Database
from perdure.engines.sqlite.database.rows import to_document
from perdure.engines.sqlite.database.transaction import Transaction
from perdure.policy.clock_slack import CLOCK_SLACK
from perdure.policy.limits.lending import LONGEST_LOAN


class Loans:
    """Makes loans, and takes them back."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._sql = database.statements("gates/loans.sql")

    def lend(self, transaction: Transaction, borrower: WorkerId, loans: Collection[Loan]) -> None:
        """Add these to a worker's loans."""
        transaction.change(self._sql["lend"], _params(borrower, loans))

    async def of(self, borrower: WorkerId) -> list[Loan]:
        """The loans of a worker."""
        params = {"worker_id": borrower}
        rows = await self._database.read(lambda transaction: transaction.run(self._sql["loans"], params))
        return [Loan(key, timedelta(microseconds=micros), number) for key, micros, number in rows]

    async def take_off(self, borrower: WorkerId, back: Collection[Loan], left: Collection[Loan]) -> set[LoanKey]:
        """Deduct these from a worker's loans, down to what it has left; returns loans for which jobs wait."""

        def wanted(transaction: Transaction) -> set[LoanKey]:
            rows = transaction.run(self._sql["waited_for"], {"worker_id": borrower})
            return {(key, timedelta(microseconds=micros)) for key, micros in rows}

        def change(transaction: Transaction) -> set[LoanKey]:
            waited_for = wanted(transaction)
            for statement, loans in (("take_off", back), ("leave", left), ("forget_empty", (*back, *left))):
                if loans:
                    transaction.change(self._sql[statement], _params(borrower, loans))
            return waited_for

        return await (self._database.write(change) if back or left else self._database.read(wanted))

    async def recall(self) -> list[str]:
        """Take back the loans of dead workers; returns the keys of their slots. Writes nothing if there are none."""
        look = self._sql["dead_borrowers"]
        dead = await self._database.read(lambda transaction: transaction.run(look))
        return await self._database.write(self._take_back) if dead else []

    def _take_back(self, transaction: Transaction) -> list[str]:
        keys: list[str] = []
        for worker_id, dead_at, jobs in transaction.run(self._sql["dead_borrowers"]):
            cut = transaction.run(self._sql["cut_slots"], {"worker_id": worker_id, "jobs": jobs})
            keys += [key for (key,) in cut]
            silent_for = transaction.now - dead_at
            if silent_for < -span(CLOCK_SLACK):  # it was declared dead by a clock that was set back since
                silent_for = span(LONGEST_LOAN)
            silent = {"worker_id": worker_id, "silent_for": silent_for}
            transaction.change(self._sql["recall"], silent)
        return keys


def _params(borrower: WorkerId, loans: Collection[Loan]) -> dict[str, object]:
    rows = [(loan.key, span(loan.per), loan.number) for loan in loans]
    return {"worker_id": borrower, "rows": to_document(rows)}

"""Loans of gates to workers.

A loan is written under the lock of its gate; a return needs no lock, because it only makes room. Both go through the
rows in the order of the index, so that they never deadlock.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

from perdure.clock import Clock
from perdure.domain.gate import Loan, LoanKey
from perdure.domain.jobs.ids import WorkerId
from perdure.engines.postgres.database.arrays import number_array, text_array
from perdure.engines.postgres.database.connections import Pool
from perdure.engines.postgres.database.encoding import seconds_text
from perdure.engines.postgres.database.naming import Naming
from perdure.engines.postgres.database.wire import Params, Statement, Wire


class Loans:
    """Makes loans, and takes them back."""

    def __init__(self, naming: Naming, pool: Pool, clock: Clock | None) -> None:
        self._statements = naming.statements("gates/loans.sql")
        self._pool = pool
        self._clock = clock

    def lend(self, wire: Wire, borrower: WorkerId, loans: Collection[Loan]) -> None:
        """Add these to a worker's loans."""
        wire.defer(self._statements["lend"], _params(borrower, loans))

    async def of(self, borrower: WorkerId) -> list[Loan]:
        """The loans of a worker."""
        return [Loan(*row) for row in await self._pool.rows(self._statements["loans"], {"worker": borrower})]

    async def take_off(self, borrower: WorkerId, back: Collection[Loan], left: Collection[Loan]) -> set[LoanKey]:
        """Deduct these from a worker's loans, down to what it has left; returns loans for which jobs wait."""
        statements: list[Statement] = [(self._statements["waited_for"], {"worker": borrower})]
        for name, loans in (("take_off", back), ("leave", left), ("forget_empty", (*back, *left))):
            if loans:
                statements.append((self._statements[name], _params(borrower, loans)))
        rows, *_ = await self._pool.run(lambda wire: wire.fetch_each(*statements))
        return {(key, span) for key, span in rows}

    async def recall(self) -> list[str]:
        """Take back the loans of dead workers; returns the keys of their slots."""
        now: datetime | None = self._clock.now() if self._clock else None
        return [key for (key,) in await self._pool.rows(self._statements["recall"], {"now": now})]


def _params(borrower: WorkerId, loans: Collection[Loan]) -> Params:
    ordered = sorted(loans, key=lambda loan: (loan.key.encode(), loan.per))
    return {
        "worker": borrower,
        "keys": text_array([loan.key for loan in ordered]),
        "spans": text_array([seconds_text(loan.per) for loan in ordered]),
        "numbers": number_array([loan.number for loan in ordered]),
    }

"""Compares the loans of a worker in the database with the worker's own books.

They stay different only if the database went back in time: a standby was promoted that lacked the last loans or
returns, or a backup was restored. A loan that only the database has keeps others out until the worker ends; one that
only the worker has is lent to others as well. A difference counts if it is the same at two checks in a row, because a
loan in progress appears on one side before the other.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

from perdure.events import Emitter
from perdure.lifecycle.loops.loop import Loop
from perdure.storage.gates import GateStore
from perdure.worker.gates.loans import Difference, Loans


class LoanAudit(Loop[int]):
    """Checks once every heartbeat, if any job has gates."""

    name = "loan audit"
    interval = timedelta(seconds=10)

    def __init__(
        self, store: GateStore, emitter: Emitter, loans: Loans, interval: timedelta, has_gates: Callable[[], bool]
    ) -> None:
        super().__init__(emitter)
        self.interval = interval
        self._store = store
        self._loans = loans
        self._has_gates = has_gates
        self._seen: frozenset[Difference] = frozenset()

    def is_wanted(self) -> bool:
        """Whether any job has gates: without them nothing is lent."""
        return self._has_gates()

    async def tick(self) -> int:
        """Compare, and correct loans that differed in the same way at the last check; returns their number."""
        before, self._seen = self._seen, frozenset()
        borrower = self._loans.borrower
        if borrower is None:
            return 0
        lent = await self._store.loans(borrower)
        if borrower != self._loans.borrower:
            return 0
        found = self._loans.differences(lent)
        self._loans.agree(found & before)
        self._seen = found - before
        return len(found & before)

"""Returns loans that the worker does not use.

Once a second it returns what was not used since the last second. If another worker waits for a gate, everything free
goes back at once, and from then on each slot as soon as its job has ended, until no worker waits any more.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Sequence
from datetime import timedelta
from typing import Final

from perdure.domain.gate import LoanKey
from perdure.events import Emitter
from perdure.lifecycle.loops.loop import Loop
from perdure.policy.limits.lending import SLOTS
from perdure.storage.gates import GateStore
from perdure.worker.gates.loans import Loans

_LOANS_PER_CALL: Final = 2_000  # so that it blocks neither the event loop nor the database for long


class LoanKeeper(Loop[int]):
    """Runs while something is lent. `on_woken`: jobs may be ready by now."""

    name = "loans"
    interval = timedelta(seconds=1)

    def __init__(self, store: GateStore, emitter: Emitter, loans: Loans, on_woken: Callable[[], None]) -> None:
        super().__init__(emitter)
        self._store = store
        self.loans = loans
        self._on_woken = on_woken
        self._one_at_a_time = asyncio.Lock()

    def is_wanted(self) -> bool:
        """Whether anything is lent."""
        return bool(self.loans.names)

    async def tick(self) -> int:
        """Return unused loans; returns the number of gates that another worker waits for."""
        return await self._look_after_all(all_free=False)

    async def give_back(self, names: Collection[LoanKey]) -> None:
        """After jobs have ended: return the free part of loans that others wait for, and wake those that wait."""
        wanted = self.loans.wanted_among(names)
        if wanted:
            await self._look_after(wanted)
        slots = {key for key, per in names if per == SLOTS}
        if slots and await self._store.release_gates(slots):
            self._on_woken()

    async def give_back_all(self) -> None:
        """Return all loans: the worker closes."""
        await self._look_after_all(all_free=True)

    async def _look_after_all(self, *, all_free: bool) -> int:
        names, wanted = self.loans.names, set[LoanKey]()
        for start in range(0, len(names), _LOANS_PER_CALL):
            wanted |= await self._look_after(names[start : start + _LOANS_PER_CALL], all_free=all_free)
        await self.give_back(wanted)
        return len(wanted)

    async def _look_after(self, names: Sequence[LoanKey], *, all_free: bool = False) -> set[LoanKey]:
        """Return the unused part of these loans; returns those that others wait for."""
        async with self._one_at_a_time:
            borrower = self.loans.borrower
            if borrower is None:
                return set()
            spare = self.loans.spare(names, all_free=all_free)
            try:
                wanted = await self._store.return_loans(borrower, spare.back, spare.left)
            except BaseException:
                self.loans.failed(spare)
                raise
            if borrower == self.loans.borrower:
                self.loans.went(spare, names, wanted)
            return wanted.intersection(names)

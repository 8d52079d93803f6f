"""Gives back what was lent to a worker and is not used.

Once a second it looks what was not needed since the last look; where others wait for a gate, all that is free goes back
at once, and from then on each slot as soon as its job has ended, until nobody waits any more. After an answer was lost
nobody asks for a moment, while the worker says how much it has (see `loans`).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from contextlib import asynccontextmanager, nullcontext, suppress
from datetime import timedelta
from typing import Final

from perdure.domain.gate import LoanKey
from perdure.events import Emitter
from perdure.lifecycle.loop import Loop
from perdure.policy.lending import SLOTS
from perdure.storage.gates import GateStore
from perdure.worker.loans import Loans

_BATCH: Final = 2_000  # so that neither the event loop nor the database is busy with it for long
_PATIENCE: Final = 0.5  # seconds that those who ask are given to be answered


class LoanKeeper(Loop[int]):
    """Runs while something is lent. `on_woken`: jobs may be ready by now."""

    name = "loans"
    interval = timedelta(seconds=1)

    def __init__(self, store: GateStore, emitter: Emitter, loans: Loans, on_woken: Callable[[], None]) -> None:
        super().__init__(emitter)
        self._store = store
        self.loans = loans
        self._on_woken = on_woken
        self._may_ask = asyncio.Event()
        self._may_ask.set()

    def is_wanted(self) -> bool:
        """Nothing lent, nothing to look after."""
        return bool(self.loans.names)

    async def tick(self) -> int:
        """Give back what was not used; how many of the gates somebody else waits for."""
        return await self._look_after_all(all_free=False)

    async def may_ask(self) -> None:
        """Wait until somebody may ask for gates."""
        while not self._may_ask.is_set():
            await self._may_ask.wait()

    async def give_back(self, names: Collection[LoanKey]) -> None:
        """Jobs have ended: give back what is free of the loans that others wait for, and wake who waits."""
        wanted = self.loans.wanted_among(names)
        if wanted:
            await self._look_after(wanted)
        slots = {key for key, per in names if per == SLOTS}
        if slots and await self._store.release_gates(slots):
            self._on_woken()

    async def give_back_all(self) -> None:
        """The worker closes: nothing will be used any more."""
        await self._look_after_all(all_free=True)

    async def _look_after_all(self, *, all_free: bool) -> int:
        is_quiet, wanted = self.loans.are_doubtful, set[LoanKey]()
        async with self._quiet() if is_quiet else nullcontext():
            names = self.loans.names
            for start in range(0, len(names), _BATCH):
                batch = names[start : start + _BATCH]
                wanted |= await self._look_after(batch, all_free=all_free, is_quiet=is_quiet)
        await self.give_back(wanted)
        return len(wanted)

    async def _look_after(
        self, names: Sequence[LoanKey], *, all_free: bool = False, is_quiet: bool = False
    ) -> set[LoanKey]:
        """Give back what is not used of these; which of them others wait for."""
        borrower = self.loans.borrower
        if borrower is None:
            return set()
        spare = self.loans.spare(names, all_free=all_free, is_quiet=is_quiet)
        try:
            wanted = await self._store.return_loans(borrower, spare.back, spare.left)
        except BaseException:
            self.loans.failed(spare)
            raise
        if borrower == self.loans.borrower:
            self.loans.went(spare, names, wanted)
        return wanted.intersection(names)

    @asynccontextmanager
    async def _quiet(self) -> AsyncIterator[None]:
        """Nobody begins to ask, and those who do have been answered, if that does not take long."""
        self._may_ask.clear()
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(_PATIENCE):
                    while self.loans.are_asked_for:  # noqa: ASYNC110 - after trouble alone
                        await asyncio.sleep(0.005)
            yield
        finally:
            self._may_ask.set()

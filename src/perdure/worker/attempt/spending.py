"""Records what handlers spend (C11, E8).

Once a spend is being recorded, it is recorded to the end, even if its attempt is told to stop meanwhile: the money is
spent either way. While the database is unreachable the handler waits. If the connection breaks and it is unknown
whether the spend was recorded, it is recorded again: a budget may count too much, never too little.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from contextlib import suppress
from typing import Protocol

from msgspec import Struct

from perdure.domain.gate import BudgetCheck, NearLimit
from perdure.domain.jobs.job import Claim
from perdure.errors import ArgumentError, ConflictError, StoreError
from perdure.events import Emitter
from perdure.kinds.kind import Kind, Registry
from perdure.lifecycle.bridges.from_thread import result_of
from perdure.lifecycle.outage import Outage
from perdure.policy.limits.gatekeeping import is_near
from perdure.policy.limits.gates import Budget
from perdure.policy.outage_backoff import DEFAULT_OUTAGE, OutageLimits
from perdure.storage.port import Store
from perdure.worker.gates.near_limits import NearLimits


class Expense(Struct, frozen=True):
    """An amount spent from a budget; `budget` None: from the only one that the kind declares.

    `is_first`: this attempt has not spent anything from it before. `of_step`: it belongs to a step of the attempt.
    """

    amount: float
    budget: str | None = None
    is_first: bool = True
    of_step: BudgetCheck | None = None


class Spending(Protocol):
    """Records the spending of an attempt; False: its claim is lost, and nothing was recorded."""

    async def spend(self, claim: Claim, expense: Expense) -> bool:
        """Recorded when it returns."""

    def spend_from_thread(self, claim: Claim, expense: Expense) -> bool:
        """The same, for a handler that blocks."""


class StoredSpending:
    """The spending of all attempts of one worker, recorded on the worker's event loop."""

    def __init__(
        self,
        store: Store,
        kinds: Registry,
        emitter: Emitter,
        near: NearLimits,
        on_lost: Callable[[Claim], None],
        outage: OutageLimits = DEFAULT_OUTAGE,
    ) -> None:
        self._store = store
        self._kinds = kinds
        self._emitter = emitter
        self._near = near
        self._on_lost = on_lost
        self._limits = outage
        self._loop = asyncio.get_running_loop()

    async def spend(self, claim: Claim, expense: Expense) -> bool:
        """Recorded when it returns."""
        budget = budget_for(self._kinds[claim.kind], expense)
        recording = self._loop.create_task(self._record(claim, budget, expense))
        try:
            return await asyncio.shield(recording)
        except asyncio.CancelledError:
            await asyncio.wait({recording})
            if not recording.cancelled():
                recording.exception()  # retrieved: a request to stop comes first
            raise

    def spend_from_thread(self, claim: Claim, expense: Expense) -> bool:
        """The same, for a handler that blocks."""
        spending = self.spend(claim, expense)
        try:
            return result_of(asyncio.run_coroutine_threadsafe(spending, self._loop), to_the_end=True)
        except RuntimeError:
            if not self._loop.is_closed():
                raise
            spending.close()
            raise ConflictError("the worker of this attempt has closed: its job went back to the queue") from None

    async def _record(self, claim: Claim, budget: Budget | BudgetCheck, expense: Expense) -> bool:
        outage = Outage("spend", self._emitter, self._limits)
        kept = await outage.outlast(lambda: self._store.spend(claim, budget.name, expense.amount))
        if kept:
            with suppress(StoreError):  # it is recorded; only a warning may be missed
                await self._warn(claim, budget, expense)
        else:
            self._on_lost(claim)
        return kept

    async def _warn(self, claim: Claim, budget: Budget | BudgetCheck, expense: Expense) -> None:
        """Warn if this spend brings a budget near its limit; until now the estimate counted in its place."""
        replaced = self._estimate(claim, budget) if expense.is_first else 0.0
        now = await self._store.now()
        for window, limit in budget.limits:
            after = await self._store.spent(budget.name, now - window)
            if is_near(after - expense.amount + replaced, after, limit):
                self._near.warn([NearLimit(budget.name, after, limit, window)])

    def _estimate(self, claim: Claim, budget: Budget | BudgetCheck) -> float:
        if isinstance(budget, BudgetCheck):
            return budget.estimate
        signature = self._kinds[claim.kind].signature
        return budget.estimate_for(dict(zip(signature.names, signature.values(claim.args), strict=True)))


def budget_for(kind: Kind, expense: Expense) -> Budget | BudgetCheck:
    """The budget to charge: that of a step if it is named, or if the job has none itself."""
    if expense.of_step is not None and (expense.budget is not None or not kind.budgets):
        return expense.of_step
    return budget_of(kind, expense.budget)


def budget_of(kind: Kind, name: str | None) -> Budget:
    """The budget of this name that a kind declares; None: its only one. Any other name is refused."""
    budgets = kind.budgets
    if not budgets:
        raise ArgumentError(
            "budget", f"job {kind.name} declares none, nor has it met one before a step: gates=[Budget(…)]"
        )
    if name is None and len(budgets) == 1:
        return next(iter(budgets.values()))
    declared = ", ".join(budgets)
    if name is None:
        raise ArgumentError("budget", f"must say which: job {kind.name} declares {declared}")
    if name not in budgets:
        raise ArgumentError("budget", f"{name} is not one that job {kind.name} declares: {declared}")
    return budgets[name]


def checked_amount(amount: object) -> float:
    """A valid amount; anything else is refused."""
    if isinstance(amount, bool) or not isinstance(amount, int | float) or not math.isfinite(amount) or amount < 0:
        raise ArgumentError("amount", f"must be a number of 0 or more, got {amount!r}")
    return float(amount)

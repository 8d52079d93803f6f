"""What a handler has spent is charged to the budget that it means, recorded even if the attempt is stopped."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta
from typing import Any, cast

import pytest
from tests.support.bench import a_claim

from perdure import App, ArgumentError, Budget
from perdure.clock import SystemClock
from perdure.domain.gate import BudgetCheck
from perdure.domain.jobs.job import Claim
from perdure.events import Emitter
from perdure.kinds.kind import Kind
from perdure.storage.port import Store
from perdure.worker.attempt.spending import Expense, StoredSpending, budget_for, checked_amount
from perdure.worker.gates.near_limits import NearLimits

OF_STEP = BudgetCheck("step", 1.0, ((timedelta(days=1), 10.0),))


def kind_with(*budgets: Budget) -> Kind:
    app = App("sqlite:///unused.db")

    @app.job(gates=list(budgets))
    async def pay() -> None: ...

    return app.kinds["pay"]


def test_an_expense_goes_to_the_budget_that_it_means() -> None:
    ai, mail = Budget("ai", daily=1), Budget("mail", daily=1)
    assert budget_for(kind_with(ai), Expense(1.0)) == ai
    assert budget_for(kind_with(ai, mail), Expense(1.0, "mail")) == mail
    assert budget_for(kind_with(), Expense(1.0, of_step=OF_STEP)) == OF_STEP
    assert budget_for(kind_with(ai), Expense(1.0, "step", of_step=OF_STEP)) == OF_STEP
    assert budget_for(kind_with(ai), Expense(1.0, of_step=OF_STEP)) == ai, "the job's own, where none is named"
    with pytest.raises(ArgumentError, match="must say which: job pay declares ai, mail"):
        budget_for(kind_with(ai, mail), Expense(1.0))
    with pytest.raises(ArgumentError, match="cash is not one that job pay declares: ai"):
        budget_for(kind_with(ai), Expense(1.0, "cash"))
    with pytest.raises(ArgumentError, match="job pay declares none"):
        budget_for(kind_with(), Expense(1.0))


@pytest.mark.parametrize("amount", [-1, float("nan"), float("inf"), True, "3", None])
def test_what_cannot_have_been_spent_is_refused(amount: Any) -> None:
    with pytest.raises(ArgumentError, match="amount must be a number of 0 or more"):
        checked_amount(amount)


class SlowTill:
    """A store that takes an expense when the test says so."""

    def __init__(self, *, holds_claim: bool = True) -> None:
        self.asked, self.go_on = asyncio.Event(), asyncio.Event()
        self.spent_so_far: list[float] = []
        self._holds_claim = holds_claim

    async def spend(self, _: Claim, __: str, amount: float) -> bool:
        self.asked.set()
        await self.go_on.wait()
        if self._holds_claim:
            self.spent_so_far.append(amount)
        return self._holds_claim

    async def now(self) -> datetime:
        return SystemClock().now()

    async def spent(self, *_: object) -> float:
        return sum(self.spent_so_far)


def spending(till: SlowTill, lost: list[Claim]) -> StoredSpending:
    emitter = Emitter()
    kinds = {"pay": kind_with(Budget("ai", daily=100))}
    return StoredSpending(cast("Store", till), kinds, emitter, NearLimits(emitter, SystemClock()), lost.append)


async def test_what_was_begun_is_recorded_although_the_attempt_is_stopped() -> None:
    till = SlowTill()
    paying = asyncio.create_task(spending(till, []).spend(a_claim("pay"), Expense(3.0)))
    await till.asked.wait()
    paying.cancel()
    till.go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await paying
    assert till.spent_so_far == [3.0]


async def test_a_claim_that_is_lost_is_reported_and_nothing_counts() -> None:
    till, lost, claim = SlowTill(holds_claim=False), list[Claim](), a_claim("pay")
    till.go_on.set()
    assert not await spending(till, lost).spend(claim, Expense(3.0))
    assert (lost, till.spent_so_far) == ([claim], [])

"""Random walks of budgets: whatever is spent, summed and forgotten, in any order, a window says what is in it."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from tests.support.builders.gate_requests import ask, budget, claims_of
from tests.support.builders.jobs import DAY, HOUR, INSTANT, MINUTE, SECOND
from tests.support.builders.spends import Neighbour, sums_differ, totals_at_gate

from perdure.clock import ManualClock
from perdure.domain.jobs.ids import JobId
from perdure.domain.jobs.job import Claim
from perdure.storage.port import Store

WINDOWS: Final = (HOUR, DAY, 7 * DAY, 30 * DAY)
MOVES: Final = (INSTANT, 59 * SECOND, MINUTE, HOUR - INSTANT, HOUR, 5 * HOUR, DAY, 6 * DAY, -INSTANT, -HOUR, -5 * HOUR)
NAMES: Final = itertools.count()

Step = tuple[str, int, int]
ACTIONS: Final = ("move", "move", "estimate", "spend", "spend", "write", "change", "sum", "sum", "forget")


@dataclass
class Walk:
    """One example: a budget of its own, and every row that it should have."""

    store: Store
    clock: ManualClock
    neighbour: Neighbour
    claims: list[Claim]
    name: str = field(default_factory=lambda: f"b{next(NAMES)}")
    spent: list[tuple[datetime, float]] = field(default_factory=list)
    estimates: dict[JobId, tuple[datetime, float]] = field(default_factory=dict)
    latest: datetime | None = None

    async def take(self, step: Step) -> None:
        action, which, number = step
        await getattr(self, action)(self.claims[which % len(self.claims)], number)

    async def move(self, _: Claim, number: int) -> None:
        """Forward, or back: never by so much that what was forgotten would count again."""
        step = MOVES[number % len(MOVES)]
        latest = self.latest = max(self.latest or self.clock.now(), self.clock.now())
        if self.clock.now() + step > latest - DAY:
            self.clock.move(step)

    async def estimate(self, claim: Claim, number: int) -> None:
        assert await ask(self.store, [claim], **budget(1e9, number / 4 + 1, name=self.name)) == [None]
        self.estimates[claim.job_id] = self.clock.now(), number / 4 + 1

    async def spend(self, claim: Claim, number: int) -> None:
        assert await self.store.spend(claim, self.name, number / 4)
        self.estimates.pop(claim.job_id, None)
        self.spent.append((self.clock.now(), number / 4))

    async def write(self, _: Claim, number: int) -> None:
        """The release before, whose transaction took long."""
        at = self.clock.now() - number * 7 * MINUTE
        self.neighbour.add(at, number / 4, self.name)
        self.spent.append((at, number / 4))

    async def change(self, claim: Claim, number: int) -> None:
        """The release before settles an estimate, or makes another one."""
        if number % 2:
            self.neighbour.estimate(self.clock.now(), number / 4, claim.job_id, self.name)
            self.estimates[claim.job_id] = self.clock.now(), number / 4
        elif self.estimates.pop(claim.job_id, None):
            self.neighbour.settle(self.clock.now(), number / 4, claim.job_id, self.name)
            self.spent.append((self.clock.now(), number / 4))

    async def sum(self, _: Claim, number: int) -> None:
        await self.store.sum_spends(number % 5 * 3 + 1)

    async def forget(self, _: Claim, number: int) -> None:
        """What lies ahead, because the clock was put back, is dated now as well."""
        now = self.clock.now()
        if all(at <= now + MINUTE for at, _ in (*self.spent, *self.estimates.values())):
            await self.store.forget_gates(number + 1)
            return
        while await self.store.forget_gates(1_000):
            pass
        self.spent = [(redated(at, now), amount) for at, amount in self.spent]
        self.estimates = {job_id: (redated(at, now), amount) for job_id, (at, amount) in self.estimates.items()}

    def total(self, since: datetime) -> float:
        return sum(amount for at, amount in (*self.spent, *self.estimates.values()) if at > since)

    async def check(self, offset: timedelta) -> None:
        now = self.clock.now()
        told = await totals_at_gate(self.store, self.claims[0], WINDOWS, self.name)
        assert told == {window: self.total(now - window) for window in WINDOWS}
        since = now - offset
        assert await self.store.spent(self.name, since) == self.total(since)


def redated(at: datetime, now: datetime) -> datetime:
    """When a spend counts as made, once upkeep has seen it."""
    return now if at > now + MINUTE else at


STEPS: Final = st.tuples(st.sampled_from(ACTIONS), st.integers(0, 3), st.integers(0, 40))


@settings(
    max_examples=40,
    deadline=None,
    derandomize=True,
    database=None,
    phases=(Phase.generate, Phase.shrink),
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(steps=st.lists(STEPS, min_size=10, max_size=40), offset=st.timedeltas(-HOUR, 30 * DAY))
async def test_c11_no_walk_spends_money_twice_or_forgets_any(
    store: Store, clock: ManualClock, engine_url: str, steps: list[Step], offset: timedelta
) -> None:
    walk = Walk(store, clock, Neighbour(engine_url), await claims_of(store, 4))
    for step in steps:
        await walk.take(step)
        await walk.check(offset)
    clock.move(2 * MINUTE)
    while await store.sum_spends(100):
        pass
    await walk.check(offset)
    assert walk.neighbour.total(clock.now() - 30 * DAY, walk.name) == walk.total(clock.now() - 30 * DAY)
    clock.move(40 * DAY)
    while await store.forget_gates(1_000):
        pass
    assert sums_differ(engine_url) == []

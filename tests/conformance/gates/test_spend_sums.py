"""GateStore: what a budget says is exact to the microsecond, whatever of it is summed by then (C11, G8, G10)."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Final

import pytest
from tests.conftest import OpenStore
from tests.support.builders.gate_requests import ask, budget, claims_of, passed
from tests.support.builders.jobs import DAY, HOUR, INSTANT, MINUTE, SECOND, a_job, claim_some, employ
from tests.support.builders.spends import Neighbour, sum_all, sums_differ, totals_at_gate
from tests.support.crew import SIZE, Crew, Ready
from tests.support.databases.behind import query

from perdure.app.connect import store_for
from perdure.clock import ManualClock
from perdure.storage.port import Store

WINDOWS: Final = (DAY, 7 * DAY, 30 * DAY)
NOON: Final = datetime(2026, 2, 3, 12, tzinfo=UTC)


@pytest.fixture
def clock() -> ManualClock:
    """At a full hour of some day."""
    return ManualClock(NOON)


@pytest.fixture
def neighbour(engine_url: str) -> Neighbour:
    """The release that knows nothing of sums, on the same database."""
    return Neighbour(engine_url)


# Windows


@pytest.mark.parametrize("summed", [0, 7, 1_000])
async def test_c11_a_window_is_exact_from_every_beginning(
    store: Store, clock: ManualClock, neighbour: Neighbour, engine_url: str, summed: int
) -> None:
    """At, before and after full minutes, hours and days, whether nothing is summed, a part or all."""
    borders = [NOON - length for length in (MINUTE, HOUR, 12 * HOUR, DAY, 30 * DAY)]
    moments = sorted(border + step for border in borders for step in (-SECOND, -INSTANT, 0 * DAY, INSTANT, SECOND))
    for place, at in enumerate(moments):
        neighbour.add(at, 2.0**place)
    assert await store.sum_spends(summed or 1) == (min(summed, len(moments)) or 1)
    for since in [at + step for at in moments for step in (-INSTANT, 0 * DAY, INSTANT)]:
        assert await store.spent("ai", since) == sum(2.0**place for place, at in enumerate(moments) if at > since)
    [claim] = await claims_of(store, 1)
    for window in (MINUTE, HOUR, *WINDOWS):
        expected = sum(2.0**place for place, at in enumerate(moments) if at > NOON - window)
        assert await totals_at_gate(store, claim, [window]) == {window: expected}
    assert sums_differ(engine_url) == []


async def test_c11_a_spend_leaves_its_window_to_the_microsecond(store: Store, clock: ManualClock) -> None:
    claim, other = await claims_of(store, 2)
    clock.move(17 * SECOND + 3 * INSTANT)
    await store.spend(claim, "ai", 1)
    assert await sum_all(store) == 1
    clock.move(DAY - INSTANT)
    assert await passed(store, [other], **budget(1, 1)) == []
    clock.move(INSTANT)
    assert await passed(store, [other], **budget(1, 1)) == [other]


async def test_c11_a_month_of_spends_is_read_from_few_rows(
    store: Store, clock: ManualClock, neighbour: Neighbour, engine_url: str
) -> None:
    for hours in range(0, 29 * 24, 6):
        neighbour.add(NOON - hours * HOUR, 1)
        neighbour.add(NOON - hours * HOUR - 5 * SECOND, 1)
    assert await sum_all(store) == 232
    days = query(engine_url, "SELECT count(*), sum(number), sum(amount) FROM {spend_sum} GROUP BY span ORDER BY 1")
    assert [tuple(map(float, row)) for row in days] == [(30, 232, 232), (232, 232, 232), (232, 232, 232)]
    assert await store.spent("ai", NOON - 30 * DAY) == 232


# What changes


async def test_c11_an_estimate_that_was_summed_becomes_what_was_spent(
    store: Store, clock: ManualClock, neighbour: Neighbour
) -> None:
    """The release before sums estimates; this one does not."""
    claims = await claims_of(store, 3)
    assert await passed(store, claims, **budget(99, 5)) == claims
    clock.move(2 * HOUR)
    assert await sum_all(store) == 0
    assert await neighbour.sum_estimates(store) == 3
    assert await store.spent("ai", NOON - INSTANT) == 15
    await store.spend(claims[0], "ai", 1)
    for summed in (1, 0):
        assert await store.spent("ai", NOON - INSTANT) == 11
        assert await store.spent("ai", NOON) == 1
        assert await totals_at_gate(store, claims[1], [HOUR, DAY]) == {HOUR: 1, DAY: 11}
        assert await sum_all(store) == summed


async def test_c11_an_estimate_that_is_replaced_counts_once(
    store: Store, clock: ManualClock, neighbour: Neighbour, engine_url: str
) -> None:
    """Also in the same instant, and with the same amount at another."""
    [claim] = await claims_of(store, 1)
    await passed(store, [claim], **budget(99, 5))
    clock.move(MINUTE)
    assert await neighbour.sum_estimates(store) == 1
    for amount, step in ((6, 0 * DAY), (6, HOUR), (2, DAY)):
        clock.move(step)
        assert await ask(store, [claim], **budget(99, amount)) == [None]
        assert await store.spent("ai", clock.now() - INSTANT) == amount
        clock.move(MINUTE)
        assert await store.spent("ai", NOON - DAY) == amount
        assert await neighbour.sum_estimates(store) == 1
        assert await store.spent("ai", NOON - DAY) == amount
        clock.move(-MINUTE)
    assert sums_differ(engine_url) == []


async def test_what_was_moved_away_leaves_no_rest_from_rounding(
    store: Store, clock: ManualClock, neighbour: Neighbour
) -> None:
    claims = await claims_of(store, 3)
    for claim, estimate in zip(claims, (0.1, 0.2, 0.3), strict=True):
        await passed(store, [claim], **budget(99, estimate))
    clock.move(MINUTE)
    assert await neighbour.sum_estimates(store) == 3
    clock.move(DAY)
    for claim in claims:
        await store.spend(claim, "ai", 0)
    assert await sum_all(store) == 3
    assert await store.spent("ai", NOON - DAY) == 0


# Whoever wrote it, and whenever


async def test_c11_what_comes_late_counts_at_once_and_is_summed_later(
    store: Store, neighbour: Neighbour, engine_url: str
) -> None:
    """As a transaction that took its time early and is committed late."""
    neighbour.add(NOON - 5 * HOUR, 1)
    assert await sum_all(store) == 1
    neighbour.add(NOON - 5 * HOUR + INSTANT, 2)
    neighbour.add(NOON - 20 * DAY, 4)
    for summed in (2, 0):
        assert await store.spent("ai", NOON - 30 * DAY) == 7
        assert await store.spent("ai", NOON - DAY) == 3
        assert await store.spent("ai", NOON - 5 * HOUR) == 2
        assert await sum_all(store) == summed
    assert sums_differ(engine_url) == []


async def test_c11_money_is_not_spent_again_because_the_clock_was_put_back(
    store: Store, clock: ManualClock, engine_url: str
) -> None:
    claims = await claims_of(store, 4)
    await store.spend(claims[0], "ai", 1)
    assert await sum_all(store) == 1
    clock.move(-3 * DAY)
    assert await passed(store, claims[1:], **budget(3, 1)) == claims[1:3]
    await store.spend(claims[1], "ai", 1)
    for summed in (1, 0):
        assert await passed(store, claims[3:], **budget(3, 1)) == []
        assert await store.spent("ai", clock.now() - INSTANT) == 3
        assert await sum_all(store) == summed
    clock.move(3 * DAY)
    assert await sum_all(store) == 0
    assert await store.spent("ai", NOON - 3 * DAY) == 1
    assert sums_differ(engine_url) == []


async def test_g10_the_release_before_spends_and_reads_beside_this_one(
    store: Store, clock: ManualClock, neighbour: Neighbour, engine_url: str
) -> None:
    """It changes what is summed and does not say so; both always see the same."""
    theirs, ours = (claim.job_id for claim in await claims_of(store, 2))

    async def agree(total: float) -> None:
        for since in (NOON - DAY, NOON + HOUR):
            assert await store.spent("ai", since) == neighbour.total(since)
        assert neighbour.total(NOON - DAY) == total

    async def check(total: float) -> None:
        await agree(total)
        await sum_all(store)
        await agree(total)
        clock.move(HOUR)

    neighbour.estimate(clock.now(), 5, theirs)
    await check(5)
    neighbour.estimate(clock.now(), 7, theirs)
    await check(7)
    await sum_all(store)
    neighbour.settle(clock.now(), 3, theirs)
    await check(3)
    neighbour.add(clock.now(), 2, job_id=ours)
    await check(5)
    assert sums_differ(engine_url) == []


async def test_g10_what_was_spent_before_the_upgrade_is_summed_in_batches_and_counts_meanwhile(
    store: Store, neighbour: Neighbour
) -> None:
    for number in range(25):
        neighbour.add(NOON - number * HOUR, 1)
    for summed in (10, 10, 5, 0):
        assert await store.spent("ai", NOON - 30 * DAY) == 25
        assert await store.sum_spends(10) == summed


async def test_budgets_are_summed_each_by_itself(store: Store, neighbour: Neighbour, engine_url: str) -> None:
    for place, name in enumerate(("a", "b", "")):
        neighbour.add(NOON, 2.0**place, name)
    assert await sum_all(store) == 3
    assert [await store.spent(name, NOON - DAY) for name in ("a", "b", "", "c")] == [1, 2, 4, 0]
    assert sums_differ(engine_url) == []


# What is forgotten


async def test_sums_are_forgotten_with_the_spends_and_not_before(
    store: Store, clock: ManualClock, neighbour: Neighbour, engine_url: str
) -> None:
    for hours in range(6):
        neighbour.add(NOON - hours * HOUR, 1)
    await sum_all(store)
    assert counted(engine_url) == (6, 13)
    clock.move(31 * DAY + 12 * HOUR)
    assert await store.forget_gates(4) == 8  # and their minutes
    assert counted(engine_url) == (2, 9)
    assert await store.spent("ai", NOON - HOUR - INSTANT) == 2
    assert [await store.forget_gates(4) for _ in range(4)] == [6, 4, 1, 0]
    assert counted(engine_url) == (0, 0)


async def test_a_sum_over_a_day_that_still_counts_is_kept(
    store: Store, clock: ManualClock, neighbour: Neighbour, engine_url: str
) -> None:
    neighbour.add(NOON, 1)
    neighbour.add(NOON + 11 * HOUR, 1)
    await sum_all(store)
    clock.move(31 * DAY + HOUR)
    assert await store.forget_gates(100) == 3  # a spend, its minute and its hour
    assert counted(engine_url) == (1, 3)
    assert await store.spent("ai", clock.now() - 30 * DAY) == 0


# At the same time


async def test_two_who_sum_at_once_sum_each_spend_once(
    store: Store, other_store: OpenStore, neighbour: Neighbour, engine_url: str
) -> None:
    stores = [store, *[await other_store() for _ in range(3)]]
    for number in range(60):
        neighbour.add(NOON - number * MINUTE, 1)
    assert sum(await asyncio.gather(*(sum_all(each, 7) for each in stores))) == 60
    assert await store.spent("ai", NOON - DAY) == 60
    assert sums_differ(engine_url) == []


SPENT_BY_EACH = 30


async def test_g8_four_processes_spend_and_sum_and_none_sees_too_little_or_too_much(
    real_time_store: Store, engine_url: str, crew: Crew
) -> None:
    await real_time_store.insert([a_job() for _ in range(SIZE * SPENT_BY_EACH)])
    told = await asyncio.to_thread(crew.together, spend_and_sum, [(engine_url,)] * SIZE)
    assert told == [[]] * SIZE
    await sum_all(real_time_store)
    since = await real_time_store.now() - DAY
    assert await real_time_store.spent("ai", since) == Neighbour(engine_url).total(since) == SIZE * SPENT_BY_EACH
    assert sums_differ(engine_url) == []


def spend_and_sum(ready: Ready, url: str) -> list[tuple[float, float]]:
    """Spend and sum in turns; each total that was less than the one before, or more than all there is."""

    async def work(store: Store) -> list[tuple[float, float]]:
        claims = await claim_some(store, await employ(store), SPENT_BY_EACH)
        since, seen, wrong = await store.now() - DAY, 0.0, []
        await asyncio.to_thread(ready)
        for number, claim in enumerate(claims, start=1):
            await store.spend(claim, "ai", 1)
            await store.sum_spends(5)
            total = await store.spent("ai", since)
            if not max(seen, number) <= total <= SIZE * SPENT_BY_EACH:
                wrong.append((seen, total))
            seen = total
        return wrong

    async def run() -> list[tuple[float, float]]:
        store = store_for(url)
        await store.open()
        try:
            return await work(store)
        finally:
            await store.close()

    return asyncio.run(run())


def counted(url: str) -> tuple[int, int]:
    """How many spends there are, and how many sums."""
    [[spends, sums]] = query(url, "SELECT (SELECT count(*) FROM {spend}), (SELECT count(*) FROM {spend_sum})")
    return spends, sums

"""GateStore: an estimate ends with the attempt that made it, and then only what was spent counts (C11)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

import pytest
from tests.support.builders.gate_requests import ask, budget, claims_of, passed
from tests.support.builders.jobs import A_FAILURE, DAY, HOUR, MINUTE, SECOND, apply, claim_some, employ, only
from tests.support.builders.spends import Neighbour, sum_all, sums_differ, totals_at_gate
from tests.support.databases.behind import query

from perdure.clock import ManualClock
from perdure.domain.jobs import transition
from perdure.domain.jobs.job import Claim
from perdure.domain.jobs.states import Reason
from perdure.domain.jobs.transition import Transition
from perdure.domain.operate.audit import By
from perdure.storage.port import Store
from perdure.storage.records import JobFilter

End = Callable[[Store, Claim], Awaitable[object]]


def by(move: Callable[[Claim], Transition]) -> End:
    """An end that a worker writes."""
    return lambda store, claim: apply(store, move(claim))


async def called_off(store: Store, claim: Claim) -> None:
    await store.cancel(only(claim.job_id), By("ann"), 1)
    await apply(store, transition.crashed(claim, A_FAILURE))


async def deleted(store: Store, claim: Claim) -> None:
    assert await store.delete(JobFilter(ids=(claim.job_id,)), By("ann"), 1)


ENDS: Final[dict[str, End]] = {
    "succeeded": by(lambda claim: transition.succeeded(claim, None, ())),
    "succeeded with a result": by(lambda claim: transition.succeeded(claim, "1", ())),
    "retrying": by(lambda claim: transition.retrying(claim, Reason.FAILED, A_FAILURE, MINUTE)),
    "dead": by(lambda claim: transition.died(claim, Reason.PERMANENT, A_FAILURE)),
    "sleeping": by(lambda claim: transition.waiting(claim, Reason.SLEEPING, MINUTE)),
    "paused": by(lambda claim: transition.paused(claim, Reason.PAUSED, MINUTE)),
    "released": by(transition.released),
    "crashed": by(lambda claim: transition.crashed(claim, A_FAILURE)),
    "cancelled": by(lambda claim: transition.cancelled(claim, None)),
    "called off": called_off,
    "deleted": deleted,
}


@pytest.fixture
def neighbour(engine_url: str) -> Neighbour:
    """The release that lets estimates stay, on the same database."""
    return Neighbour(engine_url)


@pytest.mark.parametrize("end", ENDS)
async def test_c11_an_estimate_ends_with_its_attempt_for_every_end(
    store: Store, clock: ManualClock, engine_url: str, end: str
) -> None:
    claim, other = await claims_of(store, 2)
    assert await passed(store, [claim], **budget(10, 4)) == [claim]
    assert await store.spent("ai", clock.now() - DAY) == 4
    await ENDS[end](store, claim)
    assert await store.spent("ai", clock.now() - DAY) == 0
    assert await totals_at_gate(store, other, [HOUR, DAY]) == {HOUR: 0, DAY: 0}
    assert await passed(store, [other], **budget(10, 10)) == [other]
    await apply(store, transition.succeeded(other, None, ()))
    assert await store.forget_gates(100) >= 2
    assert query(engine_url, "SELECT count(*) FROM {spend}") == [(0,)]


async def test_c11_what_was_spent_stays_and_the_next_estimates_go(store: Store, clock: ManualClock) -> None:
    """As a job that spends 1, sleeps, comes back and returns: 1 was spent, and not 5."""
    [claim] = await claims_of(store, 1)
    assert await passed(store, [claim], **budget(99, 4)) == [claim]
    await store.spend(claim, "ai", 1)
    for _ in range(3):
        await apply(store, transition.waiting(claim, Reason.SLEEPING, 0 * SECOND))
        await store.promote(10)
        [claim] = await claim_some(store, await employ(store))
        assert await passed(store, [claim], **budget(99, 4)) == [claim]
        assert await store.spent("ai", clock.now() - DAY) == 5
    await apply(store, transition.succeeded(claim, None, ()))
    assert await store.spent("ai", clock.now() - DAY) == 1
    assert await sum_all(store) == 1
    assert await store.spent("ai", clock.now() - DAY) == 1


async def test_c11_an_attempt_without_an_estimate_does_not_keep_the_last_one(store: Store, clock: ManualClock) -> None:
    [claim] = await claims_of(store, 1)
    await passed(store, [claim], **budget(9, 5))
    await apply(store, transition.crashed(claim, A_FAILURE))
    [again] = await claim_some(store, await employ(store))
    assert await passed(store, [again], **budget(9, 0)) == [again]
    assert await store.spent("ai", clock.now() - DAY) == 0


async def test_c11_what_leaves_a_window_is_not_waited_for_once_its_attempt_is_over(
    store: Store, clock: ManualClock
) -> None:
    """Only what was spent, and what others that run may spend, holds anybody."""
    ended, spender, asker = await claims_of(store, 3)
    await passed(store, [ended], **budget(10, 9))
    clock.move(HOUR)
    await apply(store, transition.succeeded(ended, None, ()))
    await store.spend(spender, "ai", 9)
    [held] = await ask(store, [asker], **budget(10, 2))
    assert held is not None
    assert held.note.startswith("ai: 9 of 10 spent in 1d, estimate 2; enough is free at")
    clock.move(DAY - HOUR)
    assert await passed(store, [asker], **budget(10, 2)) == []
    clock.move(HOUR)
    assert await passed(store, [asker], **budget(10, 2)) == [asker]


async def test_g10_estimates_that_the_release_before_has_left_and_summed_end_too(
    store: Store, clock: ManualClock, neighbour: Neighbour, engine_url: str
) -> None:
    """They stay there for ever. A job that runs counts as it should, whoever wrote its estimate and summed it."""
    ended, runs, asker = await claims_of(store, 3)
    for claim in (ended, runs):
        neighbour.estimate(clock.now(), 4, claim.job_id)
    for moved in (0 * SECOND, 2 * HOUR):
        clock.move(moved)
        assert await neighbour.sum_estimates(store) == (0 if moved else 2)
        assert await store.spent("ai", clock.now() - DAY) == 8
    await apply(store, transition.succeeded(ended, None, ()))
    for _ in range(2):
        assert await store.spent("ai", clock.now() - DAY) == 4
        assert await totals_at_gate(store, asker, [HOUR, DAY]) == {HOUR: 0, DAY: 4}
        await store.forget_gates(100)
        await sum_all(store)
    await apply(store, transition.succeeded(runs, None, ()))
    await store.forget_gates(100)
    await sum_all(store)
    assert await store.spent("ai", clock.now() - DAY) == 0
    assert sums_differ(engine_url) == []


async def test_an_estimate_that_is_taken_over_while_it_is_swept_stays(real_time_store: Store, engine_url: str) -> None:
    """Jobs come back and ask while the estimates of their last attempts are dropped."""
    claims = await claims_of(real_time_store, 20)
    await passed(real_time_store, claims, **budget(99, 1))
    over = asyncio.Event()

    async def sweep() -> None:
        while not over.is_set():
            await real_time_store.forget_gates(50)

    sweeping = asyncio.create_task(sweep())
    worker = await employ(real_time_store)
    for _ in range(10):
        await apply(real_time_store, *map(transition.released, claims))
        claims = await claim_some(real_time_store, worker, 20)
        assert await passed(real_time_store, claims, **budget(99, 1)) == claims
        assert await real_time_store.spent("ai", await real_time_store.now() - DAY) == 20
    over.set()
    await sweeping
    assert await real_time_store.spent("ai", await real_time_store.now() - DAY) == 20

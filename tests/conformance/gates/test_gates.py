"""GateStore: rates, concurrency and budgets, exact under concurrent requests (C11, G8)."""

from __future__ import annotations

import asyncio
import itertools
import random
from collections import Counter
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from typing import TypeVar

import pytest
from tests.conftest import OpenStore
from tests.support.builders.gate_requests import ask, budget, claims_of, park, passed, rate, slots
from tests.support.builders.jobs import (
    A_FAILURE,
    DAY,
    HOSTILE,
    HOUR,
    INSTANT,
    MINUTE,
    SECOND,
    a_job,
    apply,
    claim_some,
    employ,
    only,
    show,
    state_of,
)
from tests.support.crew import SIZE, Crew, Ready
from tests.support.databases.behind import query

from perdure.app.connect import store_for
from perdure.clock import ManualClock
from perdure.domain.gate import (
    OLDEST_SPENDS_SEEN,
    BudgetCheck,
    ConcurrencyCheck,
    Cost,
    GateChanges,
    GateRequest,
    GateState,
    Held,
    RateCheck,
    Start,
)
from perdure.domain.jobs import transition
from perdure.domain.jobs.ids import JobId
from perdure.domain.jobs.job import Claim
from perdure.domain.jobs.states import JobState, Reason
from perdure.domain.operate.audit import By
from perdure.policy.limits.gatekeeping import gatekeeper
from perdure.storage.port import Store

T = TypeVar("T")


async def done(store: Store, *claims: Claim) -> None:
    await apply(store, *(transition.succeeded(claim, None, ()) for claim in claims))


# Concurrency


async def test_g8_no_more_than_n_hold_a_key(store: Store) -> None:
    claims = await claims_of(store, 5)
    assert await passed(store, claims[:2], **slots(3)) == claims[:2]
    assert await passed(store, claims[2:], **slots(3)) == claims[2:3]
    assert await passed(store, claims[3:], **slots(3)) == []
    assert await passed(store, claims[3:], **slots(3, "tenant:2")) == claims[3:]


@pytest.mark.parametrize("ending", ["done", "failed", "parked", "rescued", "cancelled", "deleted"])
async def test_g8_every_end_of_a_lease_frees_its_hold(store: Store, ending: str) -> None:
    first, second = await claims_of(store, 2)
    assert await passed(store, [first, second], **slots(1)) == [first]
    if ending == "deleted":
        assert await store.delete(only(first.job_id), By("ann"), 1) == [first.job_id]
    else:
        moves = {
            "done": transition.succeeded(first, None, ()),
            "failed": transition.retrying(first, Reason.FAILED, A_FAILURE, MINUTE),
            "parked": transition.waiting(first, Reason.SNOOZED, MINUTE),
            "rescued": transition.crashed(first, A_FAILURE),
            "cancelled": transition.cancelled(first, None),
        }
        await apply(store, moves[ending])
    assert await passed(store, [second], **slots(1)) == [second]


async def test_g8_a_hold_passes_to_the_next_attempt_of_its_job(store: Store) -> None:
    first, second = await claims_of(store, 2)
    await passed(store, [first], **slots(1))
    await apply(store, transition.crashed(first, A_FAILURE))
    [again] = await claim_some(store, await employ(store))
    assert again.job_id == first.job_id
    assert await passed(store, [again], **slots(1)) == [again]
    assert await passed(store, [second], **slots(1)) == []
    await done(store, again)
    assert await passed(store, [second], **slots(1)) == [second]


async def test_a_claim_that_asks_twice_holds_once(store: Store) -> None:
    """An answer may be lost on its way: a second request gets it again."""
    first, second = await claims_of(store, 2)
    for _ in range(2):
        assert await passed(store, [first], **slots(2)) == [first]
    assert await passed(store, [second], **slots(2)) == [second]


async def test_a_lost_claim_is_held_and_changes_nothing(store: Store, clock: ManualClock) -> None:
    lost, other, third = await claims_of(store, 3)
    await apply(store, transition.crashed(lost, A_FAILURE))
    every = slots(2) | rate(2, HOUR) | budget(2, 1)
    [answer, free] = await ask(store, [lost, other], **every)
    assert answer == Held("claim lost", answer.note if answer else "", timedelta(0))
    assert free is None
    assert await passed(store, [third], **every) == [third]
    assert await store.spent("ai", clock.now() - DAY) == 2


async def test_a_lost_claim_is_reported_to_the_gatekeeper(store: Store) -> None:
    lost, held = await claims_of(store, 2)
    await apply(store, transition.crashed(lost, A_FAILURE))
    state = await seen(store, [lost, held])
    assert state.lost == {(lost.job_id, lost.token)}


async def test_the_others_that_hold_a_key_are_counted(store: Store) -> None:
    claims = await claims_of(store, 4)
    await passed(store, claims[:3], **slots(9, "a"))
    await passed(store, claims[2:3], **slots(9, "b"))
    state = await seen(store, claims[2:], **slots(9, "a", "b", "c"))
    assert {key: count for key, count in state.holders.items() if count} == {"a": 2}


# Those that wait for a slot


async def test_g8_a_slot_that_is_freed_wakes_the_next_in_line(store: Store) -> None:
    claims = await claims_of(store, 4)
    await park(store, claims, await ask(store, claims, **slots(1)))
    waiting = [claim.job_id for claim in claims[1:]]
    for job_id in waiting:
        assert (await show(store, job_id)).reason.startswith("concurrency limit reached")
    assert await store.release_gates(["tenant:1"]) == 0
    running = claims[0]
    for job_id in waiting:
        await done(store, running)
        assert await store.release_gates(["tenant:1", "nobody waits for this"]) == 1
        view = await show(store, job_id)
        assert (view.state, view.reason) == (JobState.READY, "resumed")
        [running] = await claim_some(store, await employ(store))
        assert await passed(store, [running], **slots(1)) == [running]
    await done(store, running)
    assert await store.release_gates(["tenant:1"]) == 0


async def test_as_many_are_woken_as_there_is_room_for(store: Store) -> None:
    claims = await claims_of(store, 9)
    answers = await ask(store, claims, **slots(3))
    await park(store, claims, answers)
    await done(store, *claims[:2])
    assert await store.release_gates(["tenant:1"]) == 2
    assert [await state_of(store, claim.job_id) for claim in claims[3:6]] == [
        JobState.READY,
        JobState.READY,
        JobState.PAUSED,
    ]


async def test_who_parks_too_late_for_a_wake_up_asks_for_it(store: Store) -> None:
    """The slot is freed between the answer and the parking: nothing could be woken then."""
    first, second = await claims_of(store, 2)
    answers = await ask(store, [first, second], **slots(1))
    await done(store, first)
    assert await store.release_gates(["tenant:1"]) == 0
    await park(store, [first, second], answers)
    assert await store.release_gates(["tenant:1"]) == 1
    assert await state_of(store, second.job_id) is JobState.READY


async def test_who_finds_no_slot_a_second_time_keeps_its_turn(store: Store, clock: ManualClock) -> None:
    claims = await claims_of(store, 3)
    await park(store, claims, await ask(store, claims, **slots(1)))
    clock.move(MINUTE)
    await store.promote(10)
    again = sorted(await claim_some(store, await employ(store)), key=lambda claim: claim.job_id, reverse=True)
    await park(store, again, await ask(store, again, **slots(1)))
    await done(store, claims[0])
    assert await store.release_gates(["tenant:1"]) == 1
    assert await state_of(store, claims[1].job_id) is JobState.READY
    assert await state_of(store, claims[2].job_id) is JobState.PAUSED


async def test_who_waits_for_another_key_now_is_not_woken_for_the_first(store: Store, clock: ManualClock) -> None:
    a, b, both = await claims_of(store, 3)
    await passed(store, [a], **slots(1, "a"))
    await passed(store, [b], **slots(1, "b"))
    await park(store, [both], await ask(store, [both], **slots(1, "a", "b")))
    await done(store, a)
    assert await store.release_gates(["a"]) == 1
    [both] = await claim_some(store, await employ(store))
    await park(store, [both], await ask(store, [both], **slots(1, "a", "b")))
    assert await store.release_gates(["a"]) == 0
    await done(store, b)
    assert await store.release_gates(["b"]) == 1


async def test_a_job_that_was_called_off_is_not_woken(store: Store) -> None:
    claims = await claims_of(store, 3)
    await park(store, claims, await ask(store, claims, **slots(1)))
    await store.cancel(only(claims[1].job_id), By("ann"), 1)
    await done(store, claims[0])
    assert await store.release_gates(["tenant:1"]) == 1
    assert await state_of(store, claims[1].job_id) is JobState.CANCELLED
    assert await state_of(store, claims[2].job_id) is JobState.READY


# Rates


async def test_g8_no_more_than_n_start_in_any_stretch(store: Store, clock: ManualClock) -> None:
    claims = await claims_of(store, 7)
    assert await passed(store, claims[:1], **rate(3, MINUTE)) == claims[:1]
    clock.move(30 * SECOND)
    assert await passed(store, claims[:4], **rate(3, MINUTE)) == claims[:2]
    assert await passed(store, claims[2:3], **rate(3, MINUTE, "another")) == claims[2:3]
    clock.move(30 * SECOND - INSTANT)
    assert await passed(store, claims[4:5], **rate(3, MINUTE)) == []
    clock.move(INSTANT)
    assert await passed(store, claims[4:5], **rate(3, MINUTE)) == claims[4:5]


async def test_g8_each_attempt_of_a_job_counts_as_a_start(store: Store) -> None:
    """Also two at the same instant."""
    claims = await claims_of(store, 2)
    assert await passed(store, claims[:1], **rate(2, MINUTE)) == claims[:1]
    await apply(store, transition.released(claims[0]))
    [again] = await claim_some(store, await employ(store))
    assert await passed(store, [again], **rate(2, MINUTE)) == [again]
    assert await passed(store, claims[1:], **rate(2, MINUTE)) == []


async def test_g8_a_held_job_has_a_place_of_its_own_in_the_line(store: Store, clock: ManualClock) -> None:
    claims = await claims_of(store, 6)
    answers = await ask(store, claims, **rate(2, MINUTE))
    assert [held.wait if held else None for held in answers] == [None, None, MINUTE, MINUTE, 2 * MINUTE, 2 * MINUTE]
    await park(store, claims, answers)
    for start in (2, 4):
        clock.move(MINUTE)
        await store.promote(10)
        back = await claim_some(store, await employ(store))
        assert {claim.job_id for claim in back} == {claim.job_id for claim in claims[start : start + 2]}
        assert await passed(store, back, **rate(2, MINUTE)) == back


async def test_of_a_long_line_what_counts_is_loaded(store: Store, clock: ManualClock) -> None:
    """The starts of the last stretch, the places near now, the end of the line, and the place of the asking job."""
    claims = await claims_of(store, 60)
    await ask(store, claims, **rate(2, MINUTE))
    middle = claims[30]
    state = await seen(store, [middle], **rate(2, MINUTE))
    now = clock.now()
    assert [start.at for start in state.starts["api"] if start.begun] == [now, now]
    places = [start for start in state.starts["api"] if not start.begun]
    starts = set(places)
    assert len(starts) == len(places)
    for at in (57, 58, 59):
        assert Start("api", now + at // 2 * MINUTE, claims[at].job_id, begun=False) in starts
    assert Start("api", now + 15 * MINUTE, middle.job_id, begun=False) in starts
    assert len(starts) < 20
    clock.move(10 * MINUTE)
    later = await seen(store, [middle], **rate(2, MINUTE))
    near = {start.at for start in later.starts["api"] if abs(start.at - clock.now()) < MINUTE}
    assert near == {clock.now()}
    assert not any(start.begun for start in later.starts["api"])


async def test_starts_are_loaded_from_half_of_the_limit_on(store: Store, clock: ManualClock) -> None:
    """Below that they decide nothing, and there may be very many; unless a job stands in line."""
    claims = await claims_of(store, 9)
    loaded = []
    for claim in claims[:5]:
        loaded.append(len((await seen(store, [claims[5]], **rate(8, HOUR))).starts["api"]))
        await passed(store, [claim], **rate(8, HOUR))
    assert loaded == [0, 0, 0, 3, 4]
    few = await seen(store, [claims[5]], rates=(RateCheck("api", 900, HOUR), RateCheck("api", 8, MINUTE)))
    assert len(few.starts["api"]) == 5
    assert await passed(store, claims[6:7], **rate(5, HOUR)) == []
    lined_up = await seen(store, [claims[7]], **rate(900, HOUR))
    assert Counter(start.begun for start in lined_up.starts["api"]) == {True: 5, False: 1}


async def test_g8_a_clock_that_is_put_back_lets_no_more_start(store: Store, clock: ManualClock) -> None:
    claims = await claims_of(store, 6)
    assert await passed(store, claims[:2], **rate(4, MINUTE)) == claims[:2]
    clock.move(-30 * SECOND)
    assert await passed(store, claims[2:], **rate(4, MINUTE)) == claims[2:4]
    clock.move(MINUTE - INSTANT)
    assert await passed(store, claims[4:5], **rate(4, MINUTE)) == []
    clock.move(INSTANT)
    assert await passed(store, claims[4:], **rate(4, MINUTE)) == claims[4:]


@pytest.mark.parametrize("limit", [5, 1000])
async def test_g8_starts_in_many_batches_are_never_too_many(store: Store, clock: ManualClock, limit: int) -> None:
    """Also when there are more instants than are kept apart: none is forgotten before its time."""
    claims = await claims_of(store, 60)
    began = clock.now()
    for claim in claims[:40]:
        clock.move(SECOND)
        await passed(store, [claim], rates=(RateCheck("api", limit, HOUR), RateCheck("api", 1000, DAY)))
    state = await seen(store, claims[40:41], rates=(RateCheck("api", 1, HOUR),))
    begun = sorted(start.at for start in state.starts["api"] if start.begun)
    assert len(begun) == min(40, limit)
    assert all(at >= began + (number + 1) * SECOND for number, at in enumerate(begun))


async def test_a_rate_that_others_count_over_a_longer_time_keeps_its_starts(store: Store, clock: ManualClock) -> None:
    """Two kinds of jobs may share a gate, and each has its own limit over its own time."""
    claims = await claims_of(store, 8)
    assert await passed(store, claims[:1], **rate(5, DAY)) == claims[:1]
    for claim in claims[1:5]:
        clock.move(MINUTE)
        await store.forget_gates(100)
        assert await passed(store, [claim], **rate(1, SECOND)) == [claim]
    assert await passed(store, claims[5:6], **rate(5, DAY)) == []


async def test_two_rates_under_one_key_hold_both(store: Store, clock: ManualClock) -> None:
    both = {"rates": (RateCheck("api", 2, SECOND), RateCheck("api", 3, MINUTE))}
    claims = await claims_of(store, 5)
    assert await passed(store, claims, **both) == claims[:2]
    clock.move(SECOND)
    assert await passed(store, claims[2:], **both) == claims[2:3]


# Budgets


async def test_c11_no_job_starts_above_its_budget(store: Store, clock: ManualClock) -> None:
    claims = await claims_of(store, 4)
    assert await passed(store, claims, **budget(1, 0.4)) == claims[:2]
    assert await store.spend(claims[0], "ai", 0.1)
    assert await store.spent("ai", clock.now() - DAY) == pytest.approx(0.5)
    assert await passed(store, claims[2:], **budget(1, 0.4)) == claims[2:3]
    clock.move(DAY)
    assert await store.spent("ai", clock.now() - DAY) == 0
    assert await passed(store, claims[3:], **budget(1, 0.4)) == claims[3:]


async def test_c11_the_first_spending_takes_the_place_of_the_estimate(store: Store, clock: ManualClock) -> None:
    [claim] = await claims_of(store, 1)
    await passed(store, [claim], **budget(9, 5))
    since = clock.now() - DAY
    totals = []
    for amount in (1.5, 2, 0.25):
        assert await store.spend(claim, "ai", amount)
        totals.append(await store.spent("ai", since))
    assert totals == [1.5, 3.5, 3.75]
    assert await store.spend(claim, "other", 1)
    assert await store.spent("other", since) == 1
    assert await store.spent("ai", clock.now()) == 0


async def test_c12_what_a_job_has_cost_is_reported_with_what_is_only_estimated(
    store: Store, clock: ManualClock
) -> None:
    [claim, beside] = await claims_of(store, 2)
    assert await store.costs(claim.job_id) == []
    await passed(store, [claim, beside], **budget(99, 5))
    assert await store.costs(claim.job_id) == [Cost("ai", 0, 5)]
    await store.spend(claim, "ai", 1.5)
    await store.spend(claim, "ai", 0.25)
    await store.spend(claim, "zoo", 2)
    assert await store.costs(claim.job_id) == [Cost("ai", 1.75), Cost("zoo", 2)]
    await apply(store, transition.crashed(claim, A_FAILURE))
    [again] = await claim_some(store, await employ(store))
    await passed(store, [again], **budget(99, 6))
    assert await store.costs(claim.job_id) == [Cost("ai", 1.75, 6), Cost("zoo", 2)]
    await apply(store, transition.succeeded(again, None, ()))
    assert await store.costs(claim.job_id) == [Cost("ai", 1.75), Cost("zoo", 2)]


async def test_c11_the_estimate_of_the_next_attempt_replaces_the_last(store: Store, clock: ManualClock) -> None:
    [claim] = await claims_of(store, 1)
    await passed(store, [claim], **budget(9, 5))
    await apply(store, transition.crashed(claim, A_FAILURE))
    clock.move(HOUR)
    [again] = await claim_some(store, await employ(store))
    assert await passed(store, [again], **budget(9, 6)) == [again]
    assert await store.spent("ai", clock.now() - DAY) == 6


async def test_c11_a_budget_that_is_named_twice_counts_once(store: Store, clock: ManualClock) -> None:
    [claim] = await claims_of(store, 1)
    checks = (BudgetCheck("ai", 2, ((HOUR, 9.0),)), BudgetCheck("ai", 3, ((DAY, 9.0),)))
    assert await passed(store, [claim], budgets=checks) == [claim]
    assert await store.spent("ai", clock.now() - DAY) == 3


async def test_c11_a_lost_claim_spends_nothing(store: Store, clock: ManualClock) -> None:
    [claim] = await claims_of(store, 1)
    await done(store, claim)
    assert not await store.spend(claim, "ai", 1)
    assert await store.spent("ai", clock.now() - DAY) == 0


async def test_spends_are_summed_and_what_leaves_first_is_loaded_where_the_batch_may_not_fit(
    store: Store, clock: ManualClock
) -> None:
    claims = await claims_of(store, 4)
    for claim in claims:
        await store.spend(claim, "ai", 1)
        clock.move(HOUR)
    window = 3 * HOUR + INSTANT
    roomy = (await seen(store, claims[:1], **budget(9, 1, window))).spending["ai"]
    assert (roomy.totals, roomy.oldest) == ({window: 3}, {})
    tight = (await seen(store, claims[:1], **budget(3, 1, window))).spending["ai"]
    assert [spend.job_id for spend in tight.oldest[window]] == [claim.job_id for claim in claims[1:]]


async def test_c11_of_many_spends_only_the_first_to_leave_are_loaded(store: Store, clock: ManualClock) -> None:
    """The rest is summed by the database: a budget of a month may have seen millions."""
    [claim] = await claims_of(store, 1)
    many = OLDEST_SPENDS_SEEN + 20
    for _ in range(many):
        await store.spend(claim, "ai", 1)
        clock.move(SECOND)
    first = clock.now() - many * SECOND
    spending = (await seen(store, [claim], **budget(many, 1))).spending["ai"]
    assert spending.totals == {DAY: many}
    assert [spend.at for spend in spending.oldest[DAY]] == [first + n * SECOND for n in range(OLDEST_SPENDS_SEEN)]


async def test_c11_estimates_of_jobs_that_run_are_distinguished(store: Store, clock: ManualClock) -> None:
    """They may turn out smaller, so jobs waiting for them look again soon; one that has ended counts for nothing."""
    running, ended, asking = await claims_of(store, 3)
    assert await passed(store, [running, ended, asking], **budget(9, 3)) == [running, ended, asking]
    await done(store, ended)
    spending = (await seen(store, [asking], **budget(8, 3))).spending["ai"]
    assert (spending.totals, spending.under_way) == ({DAY: 6}, 3)
    assert [spend.job_id for spend in spending.estimates] == [asking.job_id]


# All of them


async def test_a_held_job_consumes_nothing(store: Store, clock: ManualClock) -> None:
    """Only its place in a rate's line is kept."""
    first, second, third = await claims_of(store, 3)
    every = slots(9) | rate(2, HOUR) | budget(1, 1)
    assert await passed(store, [first, second], **every) == [first]
    state = await seen(store, [third], **every)
    assert state.holders == {"tenant:1": 1}
    assert [start.begun for start in state.starts["api"]] == [True]
    assert state.spending["ai"].totals == {DAY: 1}


async def test_nothing_is_written_if_the_decision_fails(store: Store) -> None:
    [claim] = await claims_of(store, 1)

    def fail(_: GateState) -> tuple[list[Held | None], GateChanges]:
        raise ValueError("a bug")

    with pytest.raises(ValueError, match="a bug"):
        await store.pass_gates([GateRequest(claim=claim, **slots(1))], fail)
    assert await passed(store, [claim], **slots(1)) == [claim]


async def test_no_requests_get_no_answers(store: Store) -> None:
    [claim] = await claims_of(store, 1)
    assert await store.pass_gates([], gatekeeper([])) == []
    assert await passed(store, [claim]) == [claim]
    assert await store.release_gates([]) == 0


async def test_keys_with_any_text_are_kept_apart(store: Store) -> None:
    claims = await claims_of(store, 2 * len(HOSTILE))
    for at, key in enumerate(HOSTILE):
        pair = claims[2 * at : 2 * at + 2]
        every = slots(1, key) | rate(1, HOUR, key) | budget(1, 1, name=key)
        assert await passed(store, pair, **every) == [pair[0]]
        await park(store, pair, await ask(store, pair, **slots(1, key)))
        await done(store, pair[0])
        assert await store.release_gates([key]) == 1


# What is forgotten


async def test_what_counts_no_more_is_forgotten(store: Store, clock: ManualClock, engine_url: str) -> None:
    claims = await claims_of(store, 6)
    await park(store, claims, await ask(store, claims, **(slots(2) | rate(4, MINUTE) | budget(9, 1))))
    waiting = await claims_of(store, 1)
    await park(store, waiting, await ask(store, waiting, **slots(2)))
    await store.cancel(only(waiting[0].job_id), By("ann"), 1)
    await done(store, *claims[:2])
    assert rows_left(engine_url) == {"gate_hold": 2, "gate_wait": 5, "spend": 2}
    assert await store.forget_gates(100) == 5
    assert rows_left(engine_url) == {"gate_wait": 4}
    clock.move(31 * DAY)
    assert await store.forget_gates(100) > 0
    assert rows_left(engine_url) == {"gate_wait": 4}
    assert await store.forget_gates(100) == 0


async def test_what_is_forgotten_is_forgotten_in_batches(store: Store, engine_url: str) -> None:
    claims = await claims_of(store, 7)
    await passed(store, claims, **slots(9))
    await done(store, *claims)
    assert [await store.forget_gates(3) for _ in range(3)] == [3, 3, 1]
    assert rows_left(engine_url) == {}


async def test_a_gate_that_was_forgotten_is_met_again(store: Store, other_store: OpenStore, clock: ManualClock) -> None:
    claims = await claims_of(store, 3)
    assert await passed(store, claims[:1], **slots(2)) == claims[:1]
    clock.move(2 * DAY)
    await store.forget_gates(100)
    assert await passed(store, claims[1:], **slots(2)) == claims[1:2]


# At the same time


async def test_g8_many_stores_at_once_never_pass_too_many(
    store: Store, other_store: OpenStore, clock: ManualClock
) -> None:
    stores = [store, *[await other_store() for _ in range(3)]]
    claims = await claims_of(store, 40)
    every = slots(3) | rate(9, HOUR) | budget(9, 1)
    answers = await asyncio.gather(
        *(passed(stores[at % 4], claims[at : at + 5], **every) for at in range(0, len(claims), 5))
    )
    assert sum(map(len, answers)) == 3
    assert await store.spent("ai", clock.now() - DAY) == 3


KEYS = tuple(f"tenant:{number}" for number in range(5))
LIMIT = 2
STARTS_EACH = 10


async def test_g8_four_processes_never_hold_a_key_more_than_n_times(
    real_time_store: Store, engine_url: str, crew: Crew
) -> None:
    """Each process notes when its jobs passed and when they were given back: no instant has more than N of a key."""
    await real_time_store.insert([a_job(args=f'{{"key":{number % 5}}}') for number in range(240)])
    told = await asyncio.to_thread(crew.together, hold_and_let_go, [(engine_url, seed) for seed in range(SIZE)])
    spans = [span for each in told for span in each]
    assert Counter(job_id for _, _, _, job_id in spans).most_common(1)[0][1] == 1
    assert len(spans) == 240
    for key in KEYS:
        mine = [(began, ended) for name, began, ended, _ in spans if name == key]
        steps = sorted([(began, 1) for began, _ in mine] + [(ended, -1) for _, ended in mine])
        assert max(itertools.accumulate(change for _, change in steps)) <= LIMIT


async def test_g8_four_processes_never_start_more_than_n_in_a_stretch(
    real_time_store: Store, engine_url: str, crew: Crew
) -> None:
    """By the times that the gates themselves have noted."""
    await real_time_store.insert([a_job() for _ in range(200)])
    told = await asyncio.to_thread(crew.together, start_often, [(engine_url,)] * SIZE)
    starts = sorted(at for each in told for at in each)
    assert len(starts) >= SIZE * STARTS_EACH
    for earlier, later in zip(starts, starts[10:], strict=False):
        assert later - earlier >= timedelta(milliseconds=100)


async def test_g8_four_processes_cannot_spend_the_same_money(
    real_time_store: Store, engine_url: str, crew: Crew
) -> None:
    await real_time_store.insert([a_job() for _ in range(80)])
    told = await asyncio.to_thread(crew.together, spend_all, [(engine_url,)] * SIZE)
    assert sum(told) == 25
    since = await real_time_store.now() - DAY
    assert await real_time_store.spent("ai", since) == 25


def hold_and_let_go(ready: Ready, url: str, seed: int) -> list[tuple[str, float, float, JobId]]:
    """Be a worker: claim, ask, run for a moment, give back; what is held is released and claimed again."""
    chance = random.Random(seed)  # noqa: S311 - a shuffle, no secret

    async def work(store: Store) -> list[tuple[str, float, float, JobId]]:
        loop, spans = asyncio.get_running_loop(), []
        worker_id = await employ(store)
        claims = await claim_some(store, worker_id, 8)
        await asyncio.to_thread(ready)
        while claims:
            chance.shuffle(claims)
            requests = [
                GateRequest(claim=claim, concurrency=(ConcurrencyCheck(key_of(claim), LIMIT),)) for claim in claims
            ]
            answers = await store.pass_gates(requests, gatekeeper(requests))
            began = loop.time()
            free = [claim for claim, held in zip(claims, answers, strict=True) if held is None]
            back = [claim for claim, held in zip(claims, answers, strict=True) if held]
            await asyncio.sleep(chance.random() / 200)
            spans += [(key_of(claim), began, loop.time(), claim.job_id) for claim in free]
            moves = [transition.succeeded(claim, None, ()) for claim in free]
            await store.acknowledge(moves + [transition.released(claim) for claim in back])
            claims = await claim_some(store, worker_id, 8)
        return spans

    return asyncio.run(_with_store(url, work))


def key_of(claim: Claim) -> str:
    return KEYS[int(claim.args[7])]


def start_often(ready: Ready, url: str) -> list[datetime]:
    """Ask for ten starts in a tenth of a second until enough were allowed; when each of them began."""

    async def work(store: Store) -> list[datetime]:
        claims = await claim_some(store, await employ(store), 50)
        await asyncio.to_thread(ready)
        started: list[datetime] = []
        waiting = list(claims)
        while len(started) < STARTS_EACH:
            requests = [GateRequest(claim=claim, **rate(10, timedelta(milliseconds=100))) for claim in waiting[:12]]
            decide = gatekeeper(requests)

            def note(state: GateState) -> tuple[list[Held | None], GateChanges]:
                answers, changes = decide(state)  # noqa: B023 - called before the next round
                begun[:] = [start.at for start in changes.starts if start.begun]  # noqa: B023 - as above
                return answers, changes

            begun = list[datetime]()
            answers = await store.pass_gates(requests, note)
            started += begun
            gone = {request.claim.job_id for request, held in zip(requests, answers, strict=True) if held is None}
            waiting = [claim for claim in waiting if claim.job_id not in gone]
        return started

    return asyncio.run(_with_store(url, work))


def spend_all(ready: Ready, url: str) -> int:
    """Ask for money with one job after the other; how many got it."""

    async def work(store: Store) -> int:
        claims = await claim_some(store, await employ(store), 20)
        await asyncio.to_thread(ready)
        return sum([len(await passed(store, [claim], **budget(25, 1))) for claim in claims])

    return asyncio.run(_with_store(url, work))


async def seen(store: Store, claims: list[Claim], **gates: object) -> GateState:
    """What a gatekeeper is shown of these gates."""
    shown: list[GateState] = []

    def look(state: GateState) -> tuple[list[Held | None], GateChanges]:
        shown.append(state)
        return [None] * len(claims), GateChanges()

    await store.pass_gates([GateRequest(claim=claim, **gates) for claim in claims], look)  # type: ignore[arg-type]
    return shown[-1]


def rows_left(url: str) -> dict[str, int]:
    tables = ("gate_place", "gate_hold", "gate_wait", "spend")
    counts = {table: query(url, f"SELECT count(*) FROM {{{table}}}")[0][0] for table in tables}
    return {table: count for table, count in counts.items() if count}


async def _with_store(url: str, work: Callable[[Store], Awaitable[T]]) -> T:
    store = store_for(url)
    await store.open()
    try:
        return await work(store)
    finally:
        await store.close()

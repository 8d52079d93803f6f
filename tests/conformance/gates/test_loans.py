"""GateStore: what workers are lent of gates counts as used for everybody, until it comes back (G8)."""

from __future__ import annotations

import asyncio
import itertools
import random
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final, TypeVar

import pytest
from tests.conftest import OpenStore
from tests.support.builders.borrowing import (
    SLOT,
    START,
    borrow,
    done,
    held_slots,
    idle_loan,
    lent_starts,
    rows,
    staffed,
    state_for,
)
from tests.support.builders.gate_requests import ask, budget, claims_of, park, passed, rate, slots
from tests.support.builders.jobs import (
    A_FAILURE,
    HOSTILE,
    INSTANT,
    MINUTE,
    SECOND,
    a_job,
    a_key,
    apply,
    claim_some,
    employ,
    only,
)
from tests.support.crew import SIZE, Crew, Ready
from tests.support.databases.behind import query

from perdure.app.connect import store_for
from perdure.clock import ManualClock, SystemClock
from perdure.domain.gate import ConcurrencyCheck, GateChanges, GateRequest, GateState, Held, Loan, RateCheck
from perdure.domain.jobs import transition
from perdure.domain.jobs.ids import JobId, WorkerId
from perdure.domain.jobs.job import Claim
from perdure.domain.jobs.states import Reason
from perdure.domain.operate.audit import By
from perdure.policy.limits.gatekeeping import gatekeeper
from perdure.policy.limits.lending import LONGEST_LOAN, SLOTS
from perdure.storage.port import Store
from perdure.worker.gates.loans import Loans

T = TypeVar("T")


# What is lent


async def test_g8_slots_that_are_lent_count_for_every_other_store(store: Store, other_store: OpenStore) -> None:
    """Also once the jobs for which they were lent have ended."""
    borrower, claims = await staffed(store, 3)
    other = await other_store()
    assert await borrow(store, borrower, claims, **slots(10)) == [None] * 3
    assert await held_slots(other) == 3
    await done(store, *claims)
    assert await held_slots(other) == 3
    assert await held_slots(other, "tenant:2") == 0
    more = await claims_of(store, 8)
    assert await passed(other, more, **slots(10)) == more[:7]


async def test_g8_starts_that_are_lent_count_for_every_other_store(
    store: Store, other_store: OpenStore, clock: ManualClock
) -> None:
    """However long ago they were lent, because they may be used again and again."""
    await idle_loan(store, 3, **rate(12, SECOND))
    other = await other_store()
    for _ in range(2):
        clock.move(MINUTE)
        assert await lent_starts(other) == 3
        assert await lent_starts(other, "another") == 0
        more = await claims_of(store, 10)
        answers = await ask(other, more, **rate(12, SECOND))
        assert [held is None for held in answers] == [True] * 9 + [False]
        assert answers[9] is not None
        assert answers[9].reason == "rate limited"
        assert "12 of 12 starts in 1s" in answers[9].note


async def test_g8_what_is_lent_counts_for_the_borrower_too(store: Store) -> None:
    borrower, claims = await staffed(store, 12)
    for claim in claims[:10]:
        assert await borrow(store, borrower, [claim], **slots(10)) == [None]
    assert all(await borrow(store, borrower, claims[10:], **slots(10)))


@pytest.mark.parametrize(
    ("gates", "number"),
    [(slots(12), 6), (rate(12, SECOND), 3), (slots(12) | rate(12, LONGEST_LOAN), 3)],
    ids=["slots", "starts", "both"],
)
async def test_g8_half_of_the_slots_and_a_quarter_of_the_starts_are_lent_and_the_rest_is_used_up_once(
    store: Store, clock: ManualClock, engine_url: str, gates: dict[str, Any], number: int
) -> None:
    borrower, claims = await staffed(store, 13)
    answers = await borrow(store, borrower, claims, **gates)
    assert [held is None for held in answers] == [True] * 12 + [False]
    assert set(rows(engine_url).values()) == {number}
    await done(store, *claims[:12])
    clock.move(LONGEST_LOAN)
    state = await state_for(store, **gates)
    assert [*state.holders.values(), *state.lent.values()] == [number] * len(gates)


async def test_g8_a_line_is_laid_out_at_the_full_pace_although_some_of_it_is_lent(store: Store) -> None:
    """400 jobs at 20 a second, in one batch: what is lent comes back when the line begins."""
    borrower, claims = await staffed(store, 400)
    answers = await borrow(store, borrower, claims, **rate(20, SECOND))
    waits = [held.wait for held in answers if held]
    assert len(waits) == 380
    assert 18 * SECOND <= max(waits) <= 20 * SECOND


async def test_g8_a_line_that_comes_after_the_loan_is_laid_out_at_the_full_pace(store: Store) -> None:
    await idle_loan(store, 5, **rate(20, SECOND))
    answers = await ask(store, await claims_of(store, 400), **rate(20, SECOND))
    waits = [held.wait for held in answers if held]
    assert len(waits) == 385
    assert 18 * SECOND <= max(waits) <= 20 * SECOND


async def test_starts_are_lent_ahead_of_a_large_limit(store: Store) -> None:
    borrower, claims = await staffed(store, 2)
    await borrow(store, borrower, claims, **rate(200, SECOND))
    assert await lent_starts(store) == 2 + 200 // 50


async def test_what_is_lent_twice_adds_up(store: Store, engine_url: str) -> None:
    borrower, claims = await staffed(store, 3)
    every = slots(20) | rate(20, SECOND)
    await borrow(store, borrower, claims[:1], **every)
    await borrow(store, borrower, claims[1:], **every)
    assert rows(engine_url) == {(*SLOT, borrower): 3, (*START, borrower): 3}
    assert await held_slots(store) == 3
    assert await lent_starts(store) == 3


async def test_each_worker_has_its_own_loan_and_all_count(store: Store, engine_url: str) -> None:
    one, two = await idle_loan(store, 2, **slots(20)), await idle_loan(store, 3, **slots(20))
    assert rows(engine_url) == {(*SLOT, one): 2, (*SLOT, two): 3}
    assert await held_slots(store) == 5


async def test_g8_a_job_with_two_rates_borrows_of_both(store: Store, engine_url: str) -> None:
    borrower, claims = await staffed(store, 2)
    assert await borrow(store, borrower, claims, **rate(40, SECOND, "api", "mail")) == [None, None]
    assert rows(engine_url) == {(*START, borrower): 2, ("mail", SECOND, borrower): 2}
    assert query(engine_url, "SELECT key FROM {gate_place}") == []


async def test_g8_a_claim_that_held_a_slot_and_then_borrows_counts_once(store: Store, engine_url: str) -> None:
    """It was let through, but did not hear of it, and asks again."""
    borrower, claims = await staffed(store, 2)
    assert await passed(store, claims, **slots(20, "tenant:1", "tenant:2")) == claims
    for _ in range(2):
        assert await borrow(store, borrower, claims[:1], **slots(20)) == [None]
    assert rows(engine_url) == {(*SLOT, borrower): 2}
    assert await held_slots(store) == 1 + 2  # what was lent to no avail goes back
    assert await held_slots(store, "tenant:2") == 2
    await store.return_loans(borrower, [], [Loan(*SLOT, 1)])
    assert await held_slots(store) == 2


async def test_g8_a_dead_worker_is_lent_nothing(store: Store, clock: ManualClock, engine_url: str) -> None:
    """A start that was lent to it would count for nobody. What it passes all the same it starts like anybody else."""
    borrower, claims = await staffed(store, 10)
    await store.retire(borrower)
    clock.move(2 * SECOND)
    gates = rate(20, SECOND) | slots(20)
    assert await borrow(store, borrower, claims, **gates) == [None] * 10
    assert rows(engine_url) == {}
    others, more = await staffed(store, 30)
    answers = await borrow(store, others, more, **gates)
    assert answers.count(None) == 10


async def test_g8_an_unknown_worker_is_lent_nothing(store: Store, engine_url: str) -> None:
    claims = await claims_of(store, 1)
    assert await borrow(store, WorkerId(4_711), claims, **slots(20)) == [None]
    assert rows(engine_url) == {}
    assert await held_slots(store) == 1


async def test_slots_and_starts_under_one_key_are_kept_apart(store: Store) -> None:
    await idle_loan(store, 3, **slots(20, "both"))
    await idle_loan(store, 2, **rate(20, SECOND, "both"))
    assert await held_slots(store, "both") == 3
    assert await lent_starts(store, "both") == 2


async def test_a_rate_that_others_count_over_a_longer_time_is_watched_and_not_lent(
    store: Store, engine_url: str
) -> None:
    """They would not see how often a lent start was used in that time."""
    [claim] = await claims_of(store, 1)
    await passed(store, [claim], **rate(900, MINUTE))
    assert (await state_for(store, **rate(20, SECOND))).watched == {"api"}
    assert (await state_for(store, **rate(900, MINUTE))).watched == frozenset()
    assert (await state_for(store, **rate(20, SECOND, "another"))).watched == frozenset()
    borrower, claims = await staffed(store, 1)
    assert await borrow(store, borrower, claims, **rate(20, SECOND)) == [None]
    assert rows(engine_url) == {}


async def test_a_rate_that_the_same_batch_counts_over_a_longer_time_is_not_lent(store: Store, engine_url: str) -> None:
    borrower, [short, long] = await staffed(store, 2)
    requests = [
        GateRequest(claim=short, rates=(RateCheck("api", 20, SECOND),)),
        GateRequest(claim=long, rates=(RateCheck("api", 90, LONGEST_LOAN),)),
    ]
    assert await store.pass_gates(requests, gatekeeper(requests, lambda _: 0), borrower) == [None, None]
    assert rows(engine_url) == {}


async def test_g8_who_counts_for_longer_waits_until_nothing_is_lent_any_more(
    store: Store, clock: ManualClock, engine_url: str
) -> None:
    """From then on nothing is lent, so that it sees every start."""
    borrower = await idle_loan(store, 2, **rate(20, SECOND))
    long = await claims_of(store, 4)
    [held] = await ask(store, long[:1], **rate(12, LONGEST_LOAN))
    assert held is not None
    assert (held.reason, held.wait) == ("rate limited", SECOND)
    assert await store.return_loans(borrower, []) == {START}
    short = await claims_of(store, 9)
    assert await borrow(store, borrower, short, **rate(20, SECOND)) == [None] * 9
    assert rows(engine_url) == {(*START, borrower): 2}
    clock.move(SECOND)
    [held] = await ask(store, long[:1], **rate(12, LONGEST_LOAN))
    assert held is not None
    assert held.wait == SECOND
    await store.return_loans(borrower, [Loan(*START, 2)])
    clock.move(SECOND)
    *free, last = await ask(store, long, **rate(12, LONGEST_LOAN))
    assert free == [None] * 3
    assert last is not None
    assert "12 of 12 starts in 10s" in last.note
    assert last.wait == LONGEST_LOAN - 2 * SECOND


@pytest.mark.parametrize(
    "gates",
    [
        slots(9),
        rate(9, SECOND),
        rate(20, LONGEST_LOAN + INSTANT),
        slots(20) | budget(9, 1),
        slots(20) | rate(9, SECOND),
    ],
)
async def test_what_is_too_small_or_must_ask_anyhow_is_not_lent(
    store: Store, engine_url: str, gates: dict[str, Any]
) -> None:
    borrower, claims = await staffed(store, 1)
    assert await borrow(store, borrower, claims, **gates) == [None]
    assert rows(engine_url) == {}


async def test_nothing_is_lent_of_a_rate_with_a_line(store: Store, clock: ManualClock, engine_url: str) -> None:
    claims = await claims_of(store, 11)
    assert await passed(store, claims, **rate(10, SECOND)) == claims[:10]
    clock.move(SECOND)
    borrower, mine = await staffed(store, 1)
    assert await borrow(store, borrower, mine, **rate(10, SECOND)) == [None]
    assert rows(engine_url) == {}


async def test_a_rate_whose_line_is_empty_is_lent_again(store: Store, clock: ManualClock, engine_url: str) -> None:
    """A job that was called off while it had a place in the line does not come to leave it."""
    claims = await claims_of(store, 12)
    await park(store, claims, await ask(store, claims, **rate(10, SECOND)))
    clock.move(SECOND)
    for called_off, lent in zip(claims[10:], (0, 2), strict=True):
        await store.cancel(only(called_off.job_id), By("ann"), 1)
        await store.forget_gates(100)
        borrower, mine = await staffed(store, 1)
        assert await borrow(store, borrower, mine, **rate(99, SECOND)) == [None]
        assert rows(engine_url).get((*START, borrower), 0) == lent


async def test_nothing_is_lent_of_slots_while_a_job_waits_for_them(store: Store, engine_url: str) -> None:
    """Even if there is room again, and enough of it."""
    claims = await claims_of(store, 11)
    await park(store, claims, await ask(store, claims, **slots(10)))
    assert set((await state_for(store, **slots(10))).awaited) == {"tenant:1"}
    await done(store, *claims[:10])
    borrower, mine = await staffed(store, 1)
    assert await borrow(store, borrower, mine, **slots(10)) == [None]
    assert rows(engine_url) == {}
    assert set((await state_for(store, **slots(10, "another"))).awaited) == set()


async def test_a_decision_that_fails_lends_nothing(store: Store, engine_url: str) -> None:
    borrower, claims = await staffed(store, 1)
    requests = [GateRequest(claim=claims[0], **slots(20))]
    decide = gatekeeper(requests, lambda _: 0)

    def fail(state: GateState) -> tuple[list[Held | None], GateChanges]:
        assert decide(state)[1].loans == (Loan(*SLOT, 1),)
        raise ValueError("a bug")

    with pytest.raises(ValueError, match="a bug"):
        await store.pass_gates(requests, fail, borrower)
    assert rows(engine_url) == {}


async def test_a_lost_claim_borrows_nothing(store: Store, engine_url: str) -> None:
    borrower, [lost, kept] = await staffed(store, 2)
    await apply(store, transition.crashed(lost, A_FAILURE))
    answers = await borrow(store, borrower, [lost, kept], **slots(20))
    assert [held is None for held in answers] == [False, True]
    assert rows(engine_url) == {(*SLOT, borrower): 1}


async def test_g8_a_job_that_comes_back_borrows_nothing(store: Store, engine_url: str) -> None:
    """It has to ask the next time as well: what it was lent would keep others out and be of no use to it."""
    borrower, [claim, fresh] = await staffed(store, 2)
    await apply(store, transition.released(claim))
    [back] = await claim_some(store, borrower, 1)
    gates = slots(10) | rate(99, SECOND)
    assert await borrow(store, borrower, [back], **gates) == [None]
    assert rows(engine_url) == {}
    assert await held_slots(store) == 1
    assert await borrow(store, borrower, [fresh], **gates) == [None]
    assert rows(engine_url) == {(*SLOT, borrower): 1, (*START, borrower): 2}


async def test_without_a_borrower_nothing_is_lent(store: Store, engine_url: str) -> None:
    claims = await claims_of(store, 2)
    assert await passed(store, claims, **(slots(20) | rate(20, SECOND))) == claims
    assert rows(engine_url) == {}
    await done(store, *claims)
    assert await held_slots(store) == 0


async def test_keys_with_any_text_are_lent_apart(store: Store, engine_url: str) -> None:
    for key in HOSTILE:
        borrower = await idle_loan(store, 2, **(slots(20, key) | rate(20, SECOND, key)))
        assert await held_slots(store, key) == 2
        assert await lent_starts(store, key) == 2
        await store.return_loans(borrower, [Loan(key, SLOTS, 1)], [Loan(key, SECOND, 1)])
        assert rows(engine_url) == {(key, SLOTS, borrower): 1, (key, SECOND, borrower): 1}
        claims = await claims_of(store, 20)
        await park(store, claims, await ask(store, claims, **slots(20, key)))
        assert await store.return_loans(borrower, [Loan(key, SLOTS, 1)], [Loan(key, SECOND, 0)]) == {(key, SLOTS)}
        assert rows(engine_url) == {}
        assert await store.release_gates([key]) == 1
        await done(store, *claims[:19], *await claim_some(store, await employ(store)))


# Who may use it


async def test_g8_a_job_is_fresh_until_it_has_been_anywhere_else(store: Store, clock: ManualClock) -> None:
    """Only such a job passes on a loan, for any other may stand in the line of a gate, and would be left there."""
    worker_id, claims = await staffed(store, 7)
    assert all(claim.is_fresh for claim in claims)
    free, *held = await ask(store, claims[:2], **rate(1, SECOND))
    no_slot = await ask(store, claims[2:4], **slots(1))
    assert free is None
    assert no_slot[0] is None
    await park(store, claims[1:2], held)
    await park(store, claims[2:4], no_slot)
    await done(store, claims[0], claims[2])
    assert await store.release_gates(["tenant:1"]) == 1
    await apply(
        store,
        transition.released(claims[4]),
        transition.crashed(claims[5], A_FAILURE),
        transition.retrying(claims[6], Reason.FAILED, A_FAILURE, SECOND),
    )
    clock.move(SECOND)
    await store.promote(100)
    again = await claim_some(store, worker_id)
    assert {claim.job_id for claim in again} == {claims[at].job_id for at in (1, 3, 4, 5, 6)}
    assert not any(claim.is_fresh for claim in again)


async def test_g8_a_job_from_a_line_of_its_queue_is_fresh_as_well(store: Store) -> None:
    """Whatever its priority, its fair key and the way in which it was handed in."""
    for jobs in ([a_job()], [a_job(fair_key="Ada"), a_job(priority=1)], [a_job(unique=a_key()), a_job(meta="{}")]):
        await store.insert(jobs)
    claims = await claim_some(store, await employ(store))
    assert [claim.is_fresh for claim in claims] == [True] * 5


async def test_g8_no_job_passes_on_a_loan_of_another_limit_or_of_mixed_limits(store: Store) -> None:
    """Under the same key one kind allows 10 at a time, another 100."""
    borrower = await employ(store)
    loans = Loans(ManualClock(), lambda: True)
    loans.belong_to(borrower)

    async def let_in(claims: Sequence[Claim], limit: int) -> tuple[int, int]:
        """How many did not have to ask, and how many passed when they did."""
        requests = [GateRequest(claim=claim, **slots(limit)) for claim in claims]
        free = loans.passes(requests)
        asking = [one for one, is_free in zip(requests, free, strict=True) if not is_free]
        return sum(free), len(await ask_and_borrow(store, loans, asking))

    small, large = await claims_of(store, 4), await claims_of(store, 42)
    assert await let_in(small[:1], 10) == (0, 1)
    loans.ended((small[0].job_id, small[0].token))
    await done(store, small[0])
    assert await let_in(large[:40], 100) == (0, 40)
    for claim in large[:3]:
        loans.ended((claim.job_id, claim.token))
    await done(store, *large[:3])
    assert await let_in(small[1:2], 10) == (0, 0)
    assert await let_in(large[40:41], 100) == (0, 1)
    loans.spare([SLOT], all_free=True)
    assert await let_in(small[2:3], 10) == (0, 0)


# At the same time


async def test_g8_many_stores_at_once_never_lend_too_much(
    store: Store, other_store: OpenStore, engine_url: str
) -> None:
    stores = [store, *[await other_store() for _ in range(3)]]
    teams = [await staffed(store, 10) for _ in stores]
    answers = await asyncio.gather(
        *(
            borrow(stores[at], borrower, claims[first : first + 2], **(slots(20) | rate(22, SECOND)))
            for at, (borrower, claims) in enumerate(teams)
            for first in range(0, 10, 2)
        )
    )
    assert sum(held is None for each in answers for held in each) == 20
    lent = rows(engine_url)
    assert sum(number for (_, per, _), number in lent.items() if per == SLOTS) == 5
    assert sum(number for (_, per, _), number in lent.items() if per == SECOND) == 5


KEYS: Final = ("tenant:0", "tenant:1")
LIMIT: Final = 12
JOBS: Final = 400


async def test_g8_four_processes_that_borrow_never_hold_a_key_more_than_n_times(
    real_time_store: Store, engine_url: str, crew: Crew
) -> None:
    """Each process notes when its jobs began and ended, with and without asking."""
    await real_time_store.insert([a_job(args=f'{{"key":{number % 2}}}') for number in range(JOBS)])
    told = await asyncio.to_thread(crew.together, hold_and_borrow, [(engine_url, seed) for seed in range(SIZE)])
    spans = [span for each, _ in told for span in each]
    assert len({job_id for _, _, _, job_id in spans}) == len(spans) == JOBS
    for key in KEYS:
        mine = [(began, ended) for name, began, ended, _ in spans if name == key]
        steps = sorted([(began, 1) for began, _ in mine] + [(ended, -1) for _, ended in mine])
        assert max(itertools.accumulate(change for _, change in steps)) <= LIMIT
    assert sum(unasked for _, unasked in told) > 0
    assert rows(engine_url) == {}


def hold_and_borrow(ready: Ready, url: str, seed: int) -> tuple[list[tuple[str, float, float, JobId]], int]:
    """Be a worker that borrows: what its jobs did, and how many of them did not ask.

    What it does not need goes back from time to time, and all that is free where somebody waits.
    """
    chance = random.Random(seed)  # noqa: S311 - a shuffle, no secret

    async def work(store: Store) -> tuple[list[tuple[str, float, float, JobId]], int]:
        loop, spans, unasked = asyncio.get_running_loop(), list[tuple[str, float, float, JobId]](), 0
        worker_id = await employ(store)
        loans = Loans(SystemClock(), lambda: True)
        loans.belong_to(worker_id)

        async def give_back(*, all_free: bool = False) -> None:
            names = loans.names
            spare = loans.spare(names, all_free=all_free)
            loans.went(spare, names, await store.return_loans(worker_id, *spare))

        claims = await claim_some(store, worker_id, chance.randint(1, 12))
        await asyncio.to_thread(ready)
        while claims:
            requests = [
                GateRequest(claim=claim, concurrency=(ConcurrencyCheck(key_of(claim), LIMIT),)) for claim in claims
            ]
            passes = loans.passes(requests)
            began = dict.fromkeys(
                [claim.job_id for claim, is_free in zip(claims, passes, strict=True) if is_free], loop.time()
            )
            unasked += len(began)
            asking = [request for request, is_free in zip(requests, passes, strict=True) if not is_free]
            answers = await ask_and_borrow(store, loans, asking)
            began |= dict.fromkeys(answers, loop.time())
            await asyncio.sleep(chance.random() / 200)
            free = [claim for claim in claims if claim.job_id in began]
            back = [claim for claim in claims if claim.job_id not in began]
            spans += [(key_of(claim), began[claim.job_id], loop.time(), claim.job_id) for claim in free]
            moves = [transition.succeeded(claim, None, ()) for claim in free]
            await store.acknowledge(moves + [transition.released(claim) for claim in back])
            for claim in free:
                loans.ended((claim.job_id, claim.token))
            if chance.random() < 0.3:
                await give_back()
            claims = await claim_some(store, worker_id, chance.randint(1, 12))
        await give_back(all_free=True)
        return spans, unasked

    return asyncio.run(_with_store(url, work))


async def ask_and_borrow(store: Store, loans: Loans, requests: Sequence[GateRequest]) -> list[JobId]:
    """Ask as a worker does, and keep the books; who may run."""
    decide, changed = gatekeeper(requests, lambda _: 0), [GateChanges()]

    def note(state: GateState) -> tuple[list[Held | None], GateChanges]:
        answers, changed[0] = decide(state)
        return answers, changed[0]

    answers = await store.pass_gates(requests, note, loans.borrower)
    borrowers = changed[0].borrowers
    loans.add(changed[0].loans, [one for one in requests if (one.claim.job_id, one.claim.token) in borrowers])
    return [one.claim.job_id for one, held in zip(requests, answers, strict=True) if held is None]


def key_of(claim: Claim) -> str:
    return KEYS[int(claim.args[7])]


async def _with_store(url: str, work: Callable[[Store], Awaitable[T]]) -> T:
    store = store_for(url)
    await store.open()
    try:
        return await work(store)
    finally:
        await store.close()

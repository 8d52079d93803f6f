"""What was lent comes back: from the worker that has it, or from one that is dead (G8)."""

from __future__ import annotations

import asyncio
import itertools

from tests.conftest import OpenStore
from tests.support.builders.borrowing import (
    SLOT,
    START,
    borrow,
    done,
    held_slots,
    idle_loan,
    lend,
    lent_starts,
    rows,
    staffed,
    state_for,
)
from tests.support.builders.gate_requests import ask, claims_of, park, passed, rate, slots
from tests.support.builders.jobs import (
    A_FAILURE,
    INSTANT,
    MINUTE,
    SECOND,
    apply,
    claim_some,
    employ,
    state_of,
)
from tests.support.databases.behind import query

from perdure.clock import ManualClock
from perdure.domain.gate import Loan
from perdure.domain.jobs import transition
from perdure.domain.jobs.states import JobState
from perdure.policy.limits.lending import SLOTS
from perdure.storage.port import Store

# What goes back


async def test_what_goes_back_is_free_for_others(store: Store) -> None:
    borrower = await idle_loan(store, 5, **slots(20))
    for back, left in ((1, 4), (0, 4), (2, 2), (2, 0)):
        assert await store.return_loans(borrower, [Loan(*SLOT, back)]) == set()
        assert await held_slots(store) == left
    borrower = await idle_loan(store, 5, **rate(20, SECOND))
    for back, left in ((1, 4), (0, 4), (2, 2), (2, 0)):
        assert await store.return_loans(borrower, [Loan(*START, back)]) == set()
        assert await lent_starts(store) == left


async def test_what_a_worker_says_it_has_left_is_all_that_it_has(store: Store) -> None:
    borrower = await idle_loan(store, 5, **slots(20))
    for number in (4, 4, 2, 0):
        assert await store.return_loans(borrower, (), [Loan(*SLOT, number)]) == set()
        assert await held_slots(store) == number
    borrower = await idle_loan(store, 5, **rate(20, SECOND))
    for number in (4, 4, 2, 0):
        assert await store.return_loans(borrower, (), [Loan(*START, number)]) == set()
        assert await lent_starts(store) == number


async def test_what_is_left_is_never_more_than_was_lent(store: Store, engine_url: str) -> None:
    """Nor is anything left of what was not lent at all."""
    borrower = await idle_loan(store, 2, **slots(20))
    await store.return_loans(borrower, (), [Loan(*SLOT, 9), Loan(*START, 9), Loan("another", SLOTS, 9)])
    assert rows(engine_url) == {(*SLOT, borrower): 2}


async def test_a_return_beyond_the_loan_leaves_no_debt(store: Store, engine_url: str) -> None:
    """It makes no more room than there was, and what is lent next counts in full."""
    borrower = await idle_loan(store, 2, **slots(20))
    await store.return_loans(borrower, [Loan(*SLOT, 9), Loan(*START, 9), Loan("another", SLOTS, 9)])
    assert rows(engine_url) == {}
    assert await held_slots(store) == 0
    await lend(store, borrower, Loan(*SLOT, 3))
    assert rows(engine_url) == {(*SLOT, borrower): 3}


async def test_what_has_all_gone_back_leaves_no_trace(store: Store, engine_url: str) -> None:
    borrower = await idle_loan(store, 2, **(slots(20) | rate(20, SECOND)))
    await store.return_loans(borrower, [Loan(*SLOT, 2)], [Loan(*START, 0), Loan("another", SLOTS, 0)])
    assert rows(engine_url) == {}
    await store.return_loans(borrower, [Loan(*SLOT, 1)], [Loan(*START, 0)])
    assert rows(engine_url) == {}


async def test_what_others_were_lent_is_left_alone(store: Store, engine_url: str) -> None:
    """And so are the worker's own loans that are not named."""
    every = slots(90, "tenant:1", "tenant:2") | rate(40, SECOND)
    one, two = await idle_loan(store, 3, **every), await idle_loan(store, 3, **every)
    await store.return_loans(one, [Loan(*SLOT, 3)], [Loan(*START, 1)])
    left = rows(engine_url)
    assert {name[:2]: number for name, number in left.items() if name[2] == two} == {
        SLOT: 3,
        ("tenant:2", SLOTS): 3,
        START: 3,
    }
    assert {name[:2]: number for name, number in left.items() if name[2] == one} == {("tenant:2", SLOTS): 3, START: 1}


async def test_rates_of_one_key_over_different_times_are_different_loans(store: Store, engine_url: str) -> None:
    """A start that counts for longer is not given back with the others. Both are shown to who asks."""
    one, two, long = await employ(store), await employ(store), ("api", 2 * SECOND)
    await lend(store, one, Loan(*START, 2), Loan(*long, 1))
    await lend(store, two, Loan(*long, 3))
    assert (await state_for(store, **rate(20, SECOND))).lent == {START: 2, long: 4}
    await store.return_loans(two, [Loan(*START, 1)], [Loan(*START, 0)])
    assert rows(engine_url) == {(*START, one): 2, (*long, one): 1, (*long, two): 3}
    await store.return_loans(two, [Loan(*long, 1)])
    await store.return_loans(one, [], [Loan(*START, 0)])
    assert rows(engine_url) == {(*long, one): 1, (*long, two): 2}


async def test_what_is_lent_meanwhile_does_not_go_back(store: Store, other_store: OpenStore, engine_url: str) -> None:
    """Whichever is written first: what goes back is a number, not what is left."""
    other = await other_store()
    borrower, claims = await staffed(store, 20)
    await lend(store, borrower, Loan(*SLOT, 20))
    await asyncio.gather(
        *itertools.chain.from_iterable(
            (borrow(store, borrower, [claim], **slots(99)), other.return_loans(borrower, [Loan(*SLOT, 1)]))
            for claim in claims
        )
    )
    assert rows(engine_url) == {(*SLOT, borrower): 20}


async def test_g8_a_worker_hears_which_of_its_slots_others_wait_for(store: Store) -> None:
    """Whether it gives something back or not, and also of what it gives back."""
    borrower = await idle_loan(store, 5, **slots(10, "tenant:1", "tenant:2"))
    stranger = await idle_loan(store, 1, **slots(20, "tenant:3"))
    claims = await claims_of(store, 6)
    assert await store.return_loans(borrower, []) == set()
    await park(store, claims, await ask(store, claims, **slots(10)))
    assert await store.return_loans(borrower, []) == {SLOT}
    assert await store.return_loans(borrower, [Loan("tenant:2", SLOTS, 4)]) == {SLOT}
    assert await store.return_loans(borrower, [Loan(*SLOT, 3)]) == {SLOT}
    assert await store.return_loans(borrower, [], [Loan(*SLOT, 1)]) == {SLOT}
    assert await store.return_loans(borrower, [Loan(*SLOT, 1)]) == {SLOT}
    assert await store.return_loans(borrower, []) == set()
    assert await store.return_loans(stranger, []) == set()


async def test_g8_a_worker_hears_which_of_its_starts_others_wait_for(store: Store) -> None:
    borrower = await idle_loan(store, 3, **rate(12, SECOND))
    await borrow(store, borrower, await claims_of(store, 1), **rate(12, SECOND, "another"))
    claims = await claims_of(store, 10)
    assert await store.return_loans(borrower, []) == set()
    await park(store, claims, await ask(store, claims, **rate(12, SECOND)))
    assert await store.return_loans(borrower, []) == {START}
    assert await store.return_loans(borrower, [Loan("another", SECOND, 1)]) == {START}
    assert await lent_starts(store, "another") == 0
    assert await store.return_loans(borrower, [Loan(*START, 2)], [Loan("another", SECOND, 0)]) == {START}
    assert await store.return_loans(borrower, [Loan(*START, 1)]) == {START}
    assert await store.return_loans(borrower, []) == set()


async def test_g8_a_worker_hears_when_no_job_waits_any_more(store: Store) -> None:
    """Of slots and of starts."""
    gates = slots(12) | rate(12, SECOND)
    borrower = await idle_loan(store, 3, **gates)
    claims = await claims_of(store, 10)
    for gate, name in ((slots(12), SLOT), (rate(12, SECOND), START)):
        await ask(store, claims, **gate)
        assert name in await store.return_loans(borrower, [])
    await store.return_loans(borrower, [Loan(*SLOT, 1), Loan(*START, 1)])
    assert await ask(store, claims[9:], **gates) == [None]
    assert await store.return_loans(borrower, []) == set()


async def test_a_line_for_slots_is_none_for_starts(store: Store) -> None:
    """Of the same key."""
    slotted, rated = await idle_loan(store, 5, **slots(10, "x")), await idle_loan(store, 2, **rate(10, SECOND, "x"))
    claims = await claims_of(store, 6)
    await park(store, claims, await ask(store, claims, **slots(10, "x")))
    assert await store.return_loans(slotted, []) == {("x", SLOTS)}
    assert await store.return_loans(rated, []) == set()


async def test_who_was_woken_stands_in_line_no_more_when_it_has_passed(store: Store, engine_url: str) -> None:
    """A job that had to wait holds its slot, and borrows none."""
    borrower = await idle_loan(store, 5, **slots(10))
    claims = await claims_of(store, 6)
    await park(store, claims, await ask(store, claims, **slots(10)))
    await done(store, *claims[:5])
    assert await store.return_loans(borrower, [Loan(*SLOT, 4)]) == {SLOT}
    assert await store.release_gates(["tenant:1"]) == 1
    again = await claim_some(store, borrower)
    assert await borrow(store, borrower, again, **slots(10)) == [None]
    assert await store.return_loans(borrower, []) == set()
    assert query(engine_url, "SELECT key FROM {gate_wait}") == []
    assert rows(engine_url) == {(*SLOT, borrower): 1}
    assert await held_slots(store) == 2


async def test_g8_lent_slots_leave_no_room_for_who_waits(store: Store) -> None:
    borrower = await idle_loan(store, 5, **slots(10))
    claims = await claims_of(store, 8)
    await park(store, claims, await ask(store, claims, **slots(10)))
    assert await store.release_gates(["tenant:1"]) == 0
    await done(store, claims[0])
    assert await store.release_gates(["tenant:1"]) == 1
    await store.return_loans(borrower, [Loan(*SLOT, 2)])
    assert await store.release_gates(["tenant:1"]) == 3 - 1  # the one that is ready holds nothing yet
    assert [await state_of(store, claim.job_id) for claim in claims[5:]] == [JobState.READY] * 3


# What the dead were lent


async def test_g8_nothing_is_recalled_of_the_living(store: Store, clock: ManualClock, engine_url: str) -> None:
    await idle_loan(store, 3, **(slots(20) | rate(20, SECOND)))
    before = rows(engine_url)
    assert len(before) == 2
    clock.move(MINUTE)
    assert await store.recall_loans() == 0
    assert rows(engine_url) == before


async def test_g8_slots_of_the_dead_are_recalled_as_its_jobs_are(
    store: Store, clock: ManualClock, engine_url: str
) -> None:
    """Until then they may run in them."""
    borrower, claims = await staffed(store, 3)
    await borrow(store, borrower, claims, **slots(20))
    await store.retire(borrower)
    for left, claim in zip((3, 2, 1), claims, strict=True):
        clock.move(MINUTE)
        await store.recall_loans()
        assert rows(engine_url) == {(*SLOT, borrower): left}
        assert await held_slots(store) == left
        await apply(store, transition.crashed(claim, A_FAILURE))
    await store.recall_loans()
    assert rows(engine_url) == {}
    assert await held_slots(store) == 0


async def test_g8_a_dead_worker_keeps_no_more_slots_than_it_holds_jobs(store: Store, engine_url: str) -> None:
    """One job that cannot be rescued does not block all others. Which job has which slot is unknown."""
    borrower, claims = await staffed(store, 11)
    await borrow(store, borrower, claims[:10], **slots(20))
    await borrow(store, borrower, claims[:1], **slots(20, "tenant:2"))
    await done(store, *claims[:9])
    waiting = await claims_of(store, 12)
    await park(store, waiting, await ask(store, waiting, **slots(20)))
    await store.retire(borrower)
    assert await store.recall_loans() == 2
    assert rows(engine_url) == {(*SLOT, borrower): 2, ("tenant:2", SLOTS, borrower): 1}
    assert [await state_of(store, claim.job_id) for claim in waiting[10:]] == [JobState.READY] * 2
    assert await store.recall_loans() == 0


async def test_g8_starts_of_the_dead_count_for_as_long_as_they_may_have_been_used(
    store: Store, clock: ManualClock, engine_url: str
) -> None:
    """Each for its own time, whether they are recalled in between or not, and whether it still holds jobs or not."""
    borrower, claims = await staffed(store, 2)
    await borrow(store, borrower, claims[:1], **rate(20, SECOND))
    await borrow(store, borrower, claims[1:], **rate(20, 3 * SECOND, "slow"))
    clock.move(MINUTE)
    await store.retire(borrower)
    clock.move(SECOND - INSTANT)
    await store.recall_loans()
    assert (await lent_starts(store), await lent_starts(store, "slow")) == (1, 1)
    clock.move(INSTANT)
    assert (await lent_starts(store), await lent_starts(store, "slow")) == (0, 1)
    assert len(rows(engine_url)) == 2
    await store.recall_loans()
    assert rows(engine_url) == {("slow", 3 * SECOND, borrower): 1}
    clock.move(2 * SECOND)
    assert await lent_starts(store, "slow") == 0
    await store.recall_loans()
    assert rows(engine_url) == {}


async def test_starts_of_the_dead_make_room_before_they_are_recalled(store: Store, clock: ManualClock) -> None:
    borrower = await idle_loan(store, 3, **rate(12, SECOND))
    await store.retire(borrower)
    claims = await claims_of(store, 12)
    clock.move(SECOND)
    assert await passed(store, claims, **rate(12, SECOND)) == claims


async def test_g8_a_recall_wakes_who_waits(store: Store) -> None:
    """As many as there is room for, and of the keys of the dead alone."""
    dead, living = await idle_loan(store, 3, **slots(10)), await idle_loan(store, 2, **slots(10))
    both = await claims_of(store, 9)
    await park(store, both, await ask(store, both, **slots(10)))
    assert [await state_of(store, claim.job_id) for claim in both[5:]] == [JobState.PAUSED] * 4
    assert await store.recall_loans() == 0
    await store.retire(dead)
    assert await store.recall_loans() == 3
    assert [await state_of(store, claim.job_id) for claim in both[5:]] == [JobState.READY] * 3 + [JobState.PAUSED]
    assert await store.return_loans(living, []) == {SLOT}
    assert await store.recall_loans() == 0


async def test_what_a_forgotten_worker_was_lent_is_recalled(store: Store, engine_url: str) -> None:
    borrower, stays = (
        await idle_loan(store, 2, **(slots(20) | rate(20, SECOND))),
        await idle_loan(store, 1, **slots(20)),
    )
    query(engine_url, f"DELETE FROM {{worker}} WHERE id = {borrower}")
    await store.recall_loans()
    assert rows(engine_url) == {(*SLOT, stays): 1}


async def test_the_loans_of_many_dead_are_recalled_at_once(store: Store, engine_url: str) -> None:
    dead = [await idle_loan(store, 1, **slots(90, key)) for key in ("a", "b", "a", "c")]
    living = await idle_loan(store, 1, **slots(90, "a"))
    for worker_id in dead:
        await store.retire(worker_id)
    await store.recall_loans()
    assert rows(engine_url) == {("a", SLOTS, living): 1}

"""The books of a worker's loans agree with the database, whatever id it has and whichever answers are lost (G8)."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence
from contextlib import suppress
from typing import cast

import pytest
from tests.support.builders.gate_requests import rate, slots
from tests.support.builders.gates import PATIENT, some, standing
from tests.support.builders.jobs import MINUTE, SECOND, claim_some, employ, enqueue
from tests.support.builders.loans import (
    UNUSED,
    Desk,
    Room,
    claim_of,
    enter,
    fresh,
    id_of,
    keeper_of,
    lent,
    quick_app,
    run_one,
    used,
)
from tests.support.databases.behind import query
from tests.support.waiting import until
from tests.support.working import at_work

from perdure import App, Concurrency, Rate
from perdure.clock import ManualClock
from perdure.domain.gate import GateChanges, GateRequest, GateState, Held, Loan, LoanKey
from perdure.domain.jobs.ids import WorkerId
from perdure.errors import StoreUnavailable
from perdure.events import Emitter, StoreTrouble
from perdure.policy.limits.gatekeeping import gatekeeper
from perdure.policy.limits.lending import SLOTS
from perdure.storage.port import Store
from perdure.worker.gates.loan_keeper import LoanKeeper
from perdure.worker.gates.loans import Loans, Spare

SLOT = ("tenant:1", SLOTS)
NOTHING = Spare([], [])


# The worker and its books


async def test_g8_a_worker_that_lost_its_id_borrows_again(store: Store, by_hand: None, engine_url: str) -> None:
    """What still runs in the slots of the old id does not end in those of the new one."""
    app, inside, may_end = App(UNUSED), list[int](), asyncio.Event()

    @app.job(gates=[Concurrency(10, name="room")])
    async def greet(name: str) -> None:
        inside.append(1)
        with suppress(asyncio.CancelledError):  # it does not listen the first time
            await may_end.wait()
        await may_end.wait()

    desk = Desk(store)
    async with at_work(desk.store, app, grace="10s", stop_timeout="20s") as shift:
        worker, old = shift.worker, id_of(shift)
        first = await enqueue(store)
        await until(lambda: len(inside) == 1)
        assert worker._parts.membership.heartbeat is not None
        await worker._parts.membership.heartbeat.stop()
        worker._parts.membership.lost()
        assert not worker._parts.attempts.loans.are_any
        new = await until(lambda: worker._parts.membership.worker_id)
        assert new != old
        await enqueue(store)
        await until(lambda: len(inside) == 2)
        assert lent(engine_url) == {("room", old): 1, ("room", new): 1}
        [books] = worker._parts.attempts.loans._accounts.values()
        assert (books.number, books.used) == (1, 1)
        [stale] = [
            running.claim for running in worker._parts.attempts.executor.running if running.claim.job_id == first
        ]
        worker._parts.attempts.reports.ended(stale, None)
        assert (books.number, books.used) == (1, 1)
        await keeper_of(shift).tick()
        assert lent(engine_url) == {("room", old): 1, ("room", new): 1}
        may_end.set()
        await until(lambda: not worker._parts.attempts.loans.are_used)
        assert (books.number, books.used) == (1, 0)


def test_what_was_used_under_an_old_id_is_not_in_the_new_books() -> None:
    """Neither its slots nor its starts, nor what was about to be given back."""
    loans = Loans(ManualClock(), lambda: True)
    every = slots(20) | rate(20, SECOND)
    old, new = fresh(**every), fresh(**every)
    lent_now, names = [Loan(*SLOT, 2), Loan("api", SECOND, 2)], [SLOT, ("api", SECOND)]
    loans.belong_to(WorkerId(1))
    loans.add(lent_now, [old])
    loans.doubt([old])
    assert loans.passes([fresh(**slots(20))]) == [True]
    loans.belong_to(WorkerId(2))
    assert loans.passes([new]) == [False]
    assert loans.names == []
    assert loans.spare(names, all_free=True) == NOTHING
    loans.add(lent_now, [new])
    assert loans.ended(claim_of(old)) == []
    again = [fresh(**every) for _ in range(2)]
    assert loans.passes(again) == [True, False]
    assert loans.spare(names, all_free=True) == NOTHING
    assert loans.ended(claim_of(again[0])) == []
    assert loans.spare(names, all_free=True) == ([Loan(*SLOT, 1)], [])


async def test_g8_an_answer_that_comes_after_a_change_of_id_is_not_given_back_before(
    store: Store, engine_url: str
) -> None:
    """One batch began to ask under the old id and goes on under the new one; another is done meanwhile."""
    old, new = await employ(store), await employ(store)
    await some(store, 5)
    early, late = split([GateRequest(claim=claim, **slots(20)) for claim in await claim_some(store, old)], 3)
    loans = Loans(ManualClock(), lambda: True)
    loans.belong_to(old)
    loans.belong_to(new)
    loans.doubt(early)
    loans.add(await loans_for(store, new, late), late)
    answer = await loans_for(store, new, early)
    for request in late:
        loans.ended(claim_of(request))
    names = loans.names
    spare = loans.spare(names, all_free=True)
    loans.went(spare, names, await store.return_loans(new, *spare))
    loans.add(answer, early)
    [account] = loans._accounts.values()
    assert (account.number, account.used) == (3, 3)
    assert lent(engine_url) == {("tenant:1", new): 3}


def split(requests: Sequence[GateRequest], at: int) -> tuple[Sequence[GateRequest], Sequence[GateRequest]]:
    return requests[:at], requests[at:]


async def loans_for(store: Store, borrower: WorkerId, requests: Sequence[GateRequest]) -> Sequence[Loan]:
    """Ask for these, each of which is lent what it asks for."""
    decide, changed = gatekeeper(requests, lambda _: 0), [GateChanges()]

    def note(state: GateState) -> tuple[list[Held | None], GateChanges]:
        answers, changed[0] = decide(state)
        return answers, changed[0]

    assert await store.pass_gates(requests, note, borrower) == [None] * len(requests)
    assert len(changed[0].borrowers) == len(requests)
    return changed[0].loans


async def test_g8_while_the_worker_was_not_heard_for_long_every_job_asks(
    store: Store, clock: ManualClock, by_hand: None, on_clock: None
) -> None:
    """It may have been declared dead, and its loans may no longer count."""
    desk = Desk(store)
    async with at_work(desk.store, quick_app(Concurrency(20)), heartbeat="1m", lease="5m") as shift:
        for _ in range(2):
            await run_one(store, shift)
        assert desk.asked == [1]
        clock.move(4 * MINUTE - SECOND)
        await run_one(store, shift)
        assert desk.asked == [1]
        clock.move(SECOND)
        for number in (2, 3):
            await run_one(store, shift)
            assert desk.asked == [1] * number
        heartbeat = shift.worker._parts.membership.heartbeat
        assert heartbeat is not None
        assert await store.beat(id_of(shift))
        heartbeat.heard_at = clock.monotonic()
        await run_one(store, shift)
        assert desk.asked == [1] * 3


async def test_a_worker_that_closes_without_an_answer_gives_back_what_it_may_have(
    store: Store, by_hand: None, engine_url: str
) -> None:
    room, desk = Room(Concurrency(20, name="room")), Desk(store)
    desk.answers_lost = 1
    async with at_work(desk.store, room.app, queues="a") as shift:
        await enter(store, "a", 1)
        await until(lambda: shift.told(StoreTrouble))
        desk.is_away = True
        assert lent(engine_url) == {("room", id_of(shift)): 1}
    assert lent(engine_url) == {}
    assert room.ran == {}
    await standing(store, ready=1)


async def _gone(borrower: WorkerId, back: Collection[Loan], left: Collection[Loan] = ()) -> set[LoanKey]:
    raise StoreUnavailable("gone")


async def test_what_is_lent_by_an_answer_that_is_under_way_does_not_go_back(
    store: Store, by_hand: None, engine_url: str
) -> None:
    """What is free goes back meanwhile, and no more than that."""
    room, desk = Room(Concurrency(20, name="room")), Desk(store)
    async with at_work(desk.store, room.app, queues="a") as shift:
        await enter(store, "a", 2)
        await until(lambda: room.inside["a"] == 2)
        name = "room", id_of(shift)
        desk.may_answer.clear()
        await enter(store, "a", 1)
        await until(lambda: lent(engine_url) == {name: 3})
        room.let_out("a", 2)
        await until(lambda: not shift.worker._parts.attempts.loans.are_used)
        for _ in range(3):
            await keeper_of(shift).tick()
        assert lent(engine_url) == {name: 1}
        assert not any(spare.left for spare in desk.returned)
        desk.may_answer.set()
        await until(lambda: room.inside["a"] == 1)
        for _ in range(2):
            await keeper_of(shift).tick()
        assert lent(engine_url) == {name: 1}
        room.let_out("a")


async def test_g8_a_lost_answer_leaves_no_loan_that_the_worker_does_not_know(
    store: Store, clock: ManualClock, by_hand: None, on_clock: None, engine_url: str
) -> None:
    """It may be written late: for a minute nothing is added, then the worker says how much it has."""
    room, desk = Room(Concurrency(20, name="room")), Desk(store)
    desk.answers_lost = 2
    async with at_work(desk.store, room.app, queues="a", **PATIENT) as shift:
        await enter(store, "a", 1)
        await until(lambda: room.inside["a"] == 1)
        assert len(shift.told(StoreTrouble)) == 2
        name = "room", id_of(shift)
        assert lent(engine_url) == {name: 1}
        assert not shift.worker._parts.attempts.loans.are_any
        await enter(store, "a", 1)
        await until(lambda: room.inside["a"] == 2)
        clock.move(MINUTE - SECOND)
        await keeper_of(shift).tick()
        assert lent(engine_url) == {name: 1}
        clock.move(2 * SECOND)
        await keeper_of(shift).tick()
        assert desk.returned[-1] == ([], [Loan("room", SLOTS, 0)])
        assert lent(engine_url) == {}
        assert not keeper_of(shift).is_wanted()
        await enter(store, "a", 1)
        await until(lambda: room.inside["a"] == 3)
        assert lent(engine_url) == {name: 1}
        room.let_out("a", 3)


async def test_starts_of_an_answer_that_was_lost_go_back(
    store: Store, clock: ManualClock, by_hand: None, on_clock: None, engine_url: str
) -> None:
    desk = Desk(store)
    desk.answers_lost = 1
    async with at_work(desk.store, quick_app(Rate(100, "10s", name="api")), **PATIENT) as shift:
        await run_one(store, shift)
        assert lent(engine_url) == {("api", id_of(shift)): 3}
        clock.move(MINUTE + SECOND)
        await keeper_of(shift).tick()
        assert lent(engine_url) == {}


async def test_g8_what_could_not_be_given_back_is_not_used_and_given_back_later(
    store: Store, clock: ManualClock, by_hand: None, on_clock: None, engine_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk = Desk(store)
    async with at_work(desk.store, quick_app(Concurrency(20, name="room")), **PATIENT) as shift:
        await run_one(store, shift)
        await keeper_of(shift).tick()
        with monkeypatch.context() as patch:
            patch.setattr(desk, "return_loans", _gone)
            with pytest.raises(StoreUnavailable):
                await keeper_of(shift).tick()
        assert lent(engine_url) == {("room", id_of(shift)): 1}
        await run_one(store, shift)
        assert desk.asked == [1, 1]
        clock.move(MINUTE + SECOND)
        await keeper_of(shift).tick()
        assert lent(engine_url) == {}


async def test_g8_what_is_lent_long_after_its_answer_was_lost_is_found_again(
    store: Store, clock: ManualClock, by_hand: None, on_clock: None, engine_url: str
) -> None:
    """Also by a worker that has nothing."""
    desk = Desk(store)
    desk.answers_late = 1
    async with at_work(desk.store, quick_app(Concurrency(20, name="room")), **PATIENT) as shift:
        await run_one(store, shift)
        clock.move(MINUTE - SECOND)
        await keeper_of(shift).tick()
        span = "0" if engine_url.startswith("sqlite") else "interval '0'"
        late = f"INSERT INTO {{gate_loan}} (key, span, worker_id, number) VALUES ('room', {span}, {id_of(shift)}, 1)"
        query(engine_url, late)
        assert keeper_of(shift).is_wanted()
        clock.move(2 * SECOND)
        await keeper_of(shift).tick()
        assert lent(engine_url) == {}
        assert not keeper_of(shift).is_wanted()


async def test_g8_what_goes_back_long_after_its_answer_was_lost_takes_nothing_that_is_used(
    store: Store, clock: ManualClock, by_hand: None, on_clock: None, engine_url: str
) -> None:
    room, desk = Room(Concurrency(20, name="room")), Desk(store)
    async with at_work(desk.store, room.app, queues="a", **PATIENT) as shift:
        await enter(store, "a", 5)
        await until(lambda: room.inside["a"] == 5)
        room.let_out("a", 2)
        await standing(store, succeeded=2, running=3)
        await until(lambda: used(shift) == (5, 3))
        await keeper_of(shift).tick()
        desk.returns_late = 1
        with pytest.raises(StoreUnavailable):
            await keeper_of(shift).tick()
        clock.move(MINUTE - SECOND)
        await keeper_of(shift).tick()
        name = "room", id_of(shift)
        assert (lent(engine_url), used(shift)) == ({name: 5}, (3, 3))
        await desk.write_late()
        assert (lent(engine_url), used(shift)) == ({name: 3}, (3, 3))
        clock.move(2 * SECOND)
        await keeper_of(shift).tick()
        assert (lent(engine_url), used(shift)) == ({name: 3}, (3, 3))
        room.let_out("a", 3)


async def test_g8_what_is_said_long_after_its_answer_was_lost_takes_nothing_that_is_used(
    store: Store, clock: ManualClock, by_hand: None, on_clock: None, engine_url: str
) -> None:
    room, desk = Room(Concurrency(20, name="room")), Desk(store)
    desk.answers_lost = 1
    async with at_work(desk.store, room.app, queues="a", **PATIENT) as shift:
        await enter(store, "a", 1)
        await until(lambda: room.inside["a"] == 1)
        clock.move(MINUTE + SECOND)
        desk.returns_late = 1
        with pytest.raises(StoreUnavailable):
            await keeper_of(shift).tick()
        await enter(store, "a", 4)
        await until(lambda: room.inside["a"] == 5)
        assert not shift.worker._parts.attempts.loans.are_any
        await desk.write_late()
        assert lent(engine_url) == {}
        room.let_out("a", 5)


async def test_g8_what_goes_back_goes_one_after_the_other(
    store: Store, other_desk: Desk, by_hand: None, engine_url: str
) -> None:
    """Of two that overtake each other the second would count what the first has taken off already."""
    room, desk = Room(Concurrency(10, name="room")), Desk(store)
    async with at_work(desk.store, room.app, queues="a") as shift, at_work(other_desk.store, room.app, queues="b"):
        await enter(store, "a", 5)
        await until(lambda: room.inside["a"] == 5)
        await enter(store, "b", 7)
        await standing(store, running=10, paused=2)
        assert await keeper_of(shift).tick() == 1
        desk.returned.clear()
        desk.may_return.clear()
        room.let_out("a", 1)
        await until(lambda: desk.returned)
        looking = asyncio.create_task(keeper_of(shift).tick())
        await asyncio.sleep(0)
        assert len(desk.returned) == 1
        desk.may_return.set()
        await looking
        await until(lambda: room.inside["b"] == 6)
        assert lent(engine_url)["room", id_of(shift)] == 4
        assert room.most == 10
        room.let_out("a", 4)
        room.let_out("b", 7)


async def test_many_loans_go_back_a_part_at_a_time() -> None:
    """So that no job has to wait for all of them."""
    returned = list[int]()

    class Counted:
        async def return_loans(
            self, borrower: WorkerId, back: Collection[Loan], left: Collection[Loan] = ()
        ) -> set[LoanKey]:
            del borrower, left
            returned.append(len(back))
            return set()

    loans = Loans(ManualClock(), lambda: True)
    keeper = LoanKeeper(cast("Store", Counted()), Emitter(), loans, lambda: None)
    loans.belong_to(WorkerId(1))
    request = fresh(**slots(20, *(f"tenant:{number}" for number in range(5_000))))
    loans.add([Loan(check.key, SLOTS, 1) for check in request.concurrency], [request])
    loans.ended(claim_of(request))
    for _ in range(2):
        await keeper.tick()
    assert returned == [0, 0, 0, 2_000, 2_000, 1_000]
    assert not keeper.is_wanted()

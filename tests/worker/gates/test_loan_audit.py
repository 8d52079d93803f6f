"""What was lent in a database that went back in time: the worker's books and the rows agree again (G8)."""

from __future__ import annotations

import asyncio
from datetime import timedelta

from tests.support.builders.loans import Desk, id_of, keeper_of, lent, quick_app, run_one
from tests.support.databases.behind import query
from tests.support.databases.snapshot import Snapshot
from tests.support.working import Shift, at_work

from perdure import App, Concurrency
from perdure.clock import ManualClock
from perdure.domain.gate import Loan
from perdure.domain.jobs.ids import WorkerId
from perdure.events import Emitter
from perdure.policy.limits.lending import SLOTS
from perdure.storage.port import Store
from perdure.worker.gates.loan_audit import LoanAudit
from perdure.worker.gates.loans import Difference, Loans

HOUR = timedelta(hours=1)
NAME = ("room", SLOTS)
GATED = (Concurrency(20, name="room"),)


def audit_of(shift: Shift, store: Store) -> LoanAudit:
    """One that looks when the test says so."""
    assert any(isinstance(loop, LoanAudit) for loop in shift.worker._parts.snapshots._loops)
    return LoanAudit(store, Emitter(), shift.worker._parts.attempts.loans, HOUR, lambda: True)


async def test_g8_what_was_given_back_and_stands_there_again_goes_back_again(
    store: Store, clock: ManualClock, by_hand: None, on_clock: None, engine_url: str
) -> None:
    async with at_work(store, quick_app(*GATED), heartbeat="30m", lease="1h") as shift:
        audit, mine = audit_of(shift, store), ("room", id_of(shift))
        await run_one(store, shift)
        assert lent(engine_url) == {mine: 1}
        before = await asyncio.to_thread(Snapshot, engine_url)
        for _ in range(2):
            await keeper_of(shift).tick()
        assert (lent(engine_url), shift.worker._parts.attempts.loans.names) == ({}, [])
        await asyncio.to_thread(before.put_back)
        assert [await audit.tick(), await audit.tick()] == [0, 1]
        clock.move(timedelta(seconds=61))
        await keeper_of(shift).tick()
        assert lent(engine_url) == {}
        assert await audit.tick() == 0


async def test_g8_what_was_lent_and_is_forgotten_is_used_no_more(
    store: Store, by_hand: None, on_clock: None, engine_url: str
) -> None:
    desk = Desk(store)
    async with at_work(desk.store, quick_app(*GATED), heartbeat="30m", lease="1h") as shift:
        audit = audit_of(shift, store)
        await run_one(store, shift)
        await run_one(store, shift)
        assert sum(desk.asked) == 1, "the second needs not ask"
        query(engine_url, "DELETE FROM {gate_loan}")
        assert [await audit.tick(), await audit.tick()] == [0, 1]
        await run_one(store, shift)
        assert sum(desk.asked) == 2
        assert await audit.tick() == 0
        assert lent(engine_url) == {("room", id_of(shift)): 1}


async def test_books_that_agree_are_left_alone(store: Store, by_hand: None, engine_url: str) -> None:
    async with at_work(store, quick_app(*GATED), heartbeat="30m", lease="1h") as shift:
        audit = audit_of(shift, store)
        await run_one(store, shift)
        assert [await audit.tick() for _ in range(3)] == [0, 0, 0]
        assert await store.loans(id_of(shift)) == [Loan("room", SLOTS, 1)]
        assert await store.loans(WorkerId(1)) == []


def test_of_loans_in_doubt_nothing_is_said() -> None:
    loans = Loans(ManualClock(), lambda: True)
    loans.belong_to(WorkerId(1))
    [difference] = loans.differences([Loan("room", SLOTS, 3)])
    assert difference == Difference(NAME, 3, 0)
    loans.agree([difference])
    assert loans.differences([Loan("room", SLOTS, 3)]) == frozenset()
    assert loans.names == [NAME]


async def test_a_worker_without_gates_does_not_ask(store: Store) -> None:
    app = App("sqlite:///unused.db")

    @app.job
    async def greet(name: str) -> None:
        pass

    async with at_work(store, app) as shift:
        [audit] = [loop for loop in shift.worker._parts.snapshots._loops if isinstance(loop, LoanAudit)]
        assert not audit.is_wanted()

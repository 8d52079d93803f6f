"""A worker uses what it was lent of a gate without asking, and gives back what it does not need (G8)."""

from __future__ import annotations

import asyncio
from collections import Counter
from datetime import datetime, timedelta

from tests.conftest import OpenStore
from tests.support.builders.gate_requests import slots
from tests.support.builders.gates import PATIENT, paused, some, standing, views
from tests.support.builders.jobs import MINUTE, SECOND, enqueue
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
)
from tests.support.databases.behind import query
from tests.support.waiting import until
from tests.support.working import at_work, found, seen

from perdure import App, Concurrency, JobState, Rate
from perdure.clock import ManualClock
from perdure.domain.gate import Loan
from perdure.domain.jobs.ids import WorkerId
from perdure.policy.limits.lending import SLOTS
from perdure.storage.port import Store
from perdure.worker.gates.loans import Loans, Spare

SLOT = ("tenant:1", SLOTS)
NOTHING = Spare([], [])


# No other worker asks for what was lent


async def test_g8_the_next_job_of_a_key_does_not_ask(store: Store, by_hand: None) -> None:
    desk = Desk(store)
    async with at_work(desk.store, quick_app(Concurrency(10))) as shift:
        for _ in range(5):
            await run_one(store, shift)
        assert desk.asked == [1]
        assert desk.lent == {id_of(shift): 1}


async def test_g8_a_job_that_finds_all_lent_slots_taken_asks(store: Store, by_hand: None) -> None:
    room, desk = Room(Concurrency(10, name="room")), Desk(store)
    async with at_work(desk.store, room.app, queues="a") as shift:
        for number in (1, 2):
            await enter(store, "a", 1)
            await until(lambda number=number: room.inside["a"] == number)  # type: ignore[misc]
        assert desk.asked == [1, 1]
        room.let_out("a", 2)
        await until(lambda: not shift.worker._parts.attempts.loans.are_used)
        await enter(store, "a", 2)
        await until(lambda: room.inside["a"] == 2)
        assert desk.asked == [1, 1]
        await enter(store, "a", 1)
        await until(lambda: room.inside["a"] == 3)
        assert desk.asked == [1, 1, 1]
        room.let_out("a", 3)


async def test_g8_each_value_of_a_key_is_lent_by_itself(store: Store, by_hand: None) -> None:
    desk = Desk(store)
    async with at_work(desk.store, quick_app(Concurrency(10, key="name"))):
        for name, asked in (("Ada", 1), ("Eve", 2), ("Ada", 2), ("Eve", 2), ("Bob", 3)):
            await seen(store, await enqueue(store, args=f'{{"name":"{name}"}}'), JobState.SUCCEEDED)
            assert sum(desk.asked) == asked


async def test_g8_a_start_that_was_lent_is_used_again_when_its_time_is_over(
    store: Store, clock: ManualClock, by_hand: None, on_clock: None
) -> None:
    desk = Desk(store)
    async with at_work(desk.store, quick_app(Rate(10, "10s")), **PATIENT) as shift:
        await run_one(store, shift)
        assert desk.asked == [1]
        clock.move(10.1 * SECOND - timedelta(milliseconds=1))
        await run_one(store, shift)
        assert desk.asked == [1, 1]
        clock.move(timedelta(milliseconds=1))
        await run_one(store, shift)
        assert desk.asked == [1, 1]
        clock.move(MINUTE)
        for _ in range(2):
            await run_one(store, shift)
        assert desk.asked == [1, 1]


async def test_g8_starts_are_lent_ahead_as_many_as_were_used_lately(
    store: Store, by_hand: None, on_clock: None
) -> None:
    desk = Desk(store)
    async with at_work(desk.store, quick_app(Rate(100, "10s")), **PATIENT) as shift:
        counts = []
        for _ in range(8):
            await run_one(store, shift)
            counts.append(len(desk.asked))
    assert counts == [1, 1, 1, 2, 2, 2, 2, 3]


async def test_g8_never_more_than_n_start_in_any_stretch_over_two_workers_that_borrow(
    store: Store, other_store: OpenStore, clock: ManualClock, by_hand: None, on_clock: None
) -> None:
    """Time moves only while no job starts, so that the instant of each start is known."""
    app, starts = App(UNUSED), list[datetime]()

    @app.job(gates=[Rate(20, "1s", name="api")])
    async def greet(name: str) -> None:
        starts.append(clock.now())

    async def is_settled() -> bool:
        states = {view.state for view in await views(store)}
        return states <= {JobState.SUCCEEDED, JobState.PAUSED}

    one, two = Desk(store), Desk(await other_store())
    async with (
        at_work(one.store, app, queues="a", **PATIENT) as first,
        at_work(two.store, app, queues="b", **PATIENT) as second,
    ):
        for step in range(16):
            number = (2, 3, 9, 1)[step // 4]
            await enter(store, "a", number)
            await enter(store, "b", number)
            await found(is_settled)
            for shift in (first, second):
                await keeper_of(shift).tick()
            clock.move(0.26 * SECOND)
            await store.promote(100)
        while len(starts) < 4 * 2 * (2 + 3 + 9 + 1):
            await found(is_settled)
            clock.move(0.26 * SECOND)
            await store.promote(100)
        assert len(one.lent) == len(two.lent) == 1
    assert len(starts) == 120
    assert one.passed + two.passed < 120
    for earlier, later in zip(starts, starts[20:], strict=False):
        assert later - earlier >= SECOND


async def test_g8_two_workers_that_borrow_never_run_more_than_n_at_once_and_all_finish(
    real_time_store: Store,
) -> None:
    app, inside, most, ran, all_in = App(UNUSED), set[object](), 0, Counter[str](), asyncio.Event()

    @app.job(gates=[Concurrency(20, name="room")])
    async def greet(name: str) -> None:
        nonlocal most
        me = object()
        inside.add(me)
        most = max(most, len(inside))
        await (asyncio.sleep(0.02) if all_in.is_set() or ran.total() < 4 else all_in.wait())
        inside.remove(me)
        ran[name] += 1

    other = real_time_store.sibling()
    await other.open()
    one, two = Desk(real_time_store), Desk(other)
    try:
        async with at_work(one.store, app, queues="a") as first, at_work(two.store, app, queues="b") as second:
            for queue in ("a", "b"):
                await enter(real_time_store, queue, 2)
                await until(lambda queue=queue: ran[queue] == 2)  # type: ignore[misc]
            assert one.lent[id_of(first)] > 0
            assert two.lent[id_of(second)] > 0
            for _ in range(4):
                for queue in ("a", "b"):
                    await enter(real_time_store, queue, 37)
            await until(lambda: len(inside) == 20)
            all_in.set()
            await standing(real_time_store, succeeded=300)
    finally:
        await other.close()
    assert ran == {"a": 150, "b": 150}
    assert most == 20


async def test_g8_a_loan_admits_no_job_if_another_kind_has_filled_the_gate_beyond_its_limit(
    store: Store, other_desk: Desk, by_hand: None, engine_url: str
) -> None:
    """Kinds that share a gate and differ about its limit have to ask each time."""
    app, inside, may_end = App(UNUSED), Counter[str](), asyncio.Event()

    @app.job(gates=[Concurrency(10, name="room")])
    async def few(name: str) -> None:
        inside["few"] += 1

    @app.job(gates=[Concurrency(40, name="room")])
    async def many(name: str) -> None:
        inside["many"] += 1
        await may_end.wait()

    async with at_work(store, app, queues="a"), at_work(other_desk.store, app, queues="b", concurrency=20):
        await seen(store, await enqueue(store, kind="few", queue="a"), JobState.SUCCEEDED)
        await some(store, 12, kind="many", queue="b")
        await until(lambda: inside["many"] == 12)
        await seen(store, await enqueue(store, kind="few", queue="a"), JobState.PAUSED)
        assert lent(engine_url) == {}
        may_end.set()
        await standing(store, succeeded=14)


async def test_g8_jobs_that_come_back_are_not_held_by_what_was_lent_to_those_before(
    store: Store, clock: ManualClock, by_hand: None
) -> None:
    """None of them could use it, because each of them asks."""
    room = Room(Concurrency(20, name="room"))
    async with at_work(store, room.app, queues="a", **PATIENT):
        for number in (10, 11):
            await some(store, number, queue="a", args='{"name":"a"}', delay=SECOND)
            clock.move(SECOND)
            await store.promote(100)
            await until(lambda number=number: room.inside["a"] == number)  # type: ignore[misc]
            room.let_out("a", number)
            await until(lambda: not room.inside["a"])


# What is not needed goes back


async def test_what_was_not_used_since_the_last_look_goes_back(store: Store, by_hand: None, engine_url: str) -> None:
    room = Room(Concurrency(20, name="room"))
    async with at_work(store, room.app, queues="a") as shift:
        await enter(store, "a", 4)
        await until(lambda: room.inside["a"] == 4)
        room.let_out("a", 3)
        await standing(store, succeeded=3, running=1)
        name = "room", id_of(shift)
        assert lent(engine_url) == {name: 4}
        left = []
        for _ in range(3):
            await keeper_of(shift).tick()
            left.append(lent(engine_url).get(name))
        assert left == [4, 1, 1]
        assert keeper_of(shift).is_wanted()
        room.let_out("a")
        await until(lambda: not shift.worker._parts.attempts.loans.are_used)
        for _ in range(2):
            await keeper_of(shift).tick()
        assert lent(engine_url) == {}
        assert not keeper_of(shift).is_wanted()


async def test_starts_go_back_when_their_time_is_over(
    store: Store, clock: ManualClock, by_hand: None, on_clock: None, engine_url: str
) -> None:
    async with at_work(store, quick_app(Rate(100, "10s", name="api")), **PATIENT) as shift:
        await run_one(store, shift)
        name = "api", id_of(shift)
        left = [lent(engine_url)[name]]
        for wait in (SECOND, 8 * SECOND, 1.1 * SECOND, SECOND):
            clock.move(wait)
            await keeper_of(shift).tick()
            left.append(lent(engine_url).get(name, 0))
        assert left == [3, 1, 1, 1, 0]


async def test_g8_a_job_that_waits_runs_when_an_idle_worker_looks_after_its_loans(
    store: Store, other_desk: Desk, by_hand: None, engine_url: str
) -> None:
    """The clock stands still: no job looks again by itself."""
    room = Room(Concurrency(10, name="room"))
    async with at_work(store, room.app, queues="a") as idle, at_work(other_desk.store, room.app, queues="b"):
        await enter(store, "a", 5)
        await until(lambda: room.inside["a"] == 5)
        room.let_out("a", 5)
        await until(lambda: not idle.worker._parts.attempts.loans.are_used)
        assert lent(engine_url) == {("room", id_of(idle)): 5}
        await enter(store, "b", 7)
        assert len(paused(await standing(store, succeeded=5, running=5, paused=2))) == 2
        assert await keeper_of(idle).tick() == 1
        await until(lambda: room.inside["b"] == 7)
        assert ("room", id_of(idle)) not in lent(engine_url)
        room.let_out("b", 7)


async def test_g8_where_a_job_waits_a_slot_comes_back_as_soon_as_its_job_has_ended(
    store: Store, other_desk: Desk, by_hand: None, engine_url: str
) -> None:
    room = Room(Concurrency(10, name="room"))
    async with at_work(store, room.app, queues="a") as lender, at_work(other_desk.store, room.app, queues="b"):
        await enter(store, "a", 5)
        await until(lambda: room.inside["a"] == 5)
        await enter(store, "b", 7)
        await standing(store, running=10, paused=2)
        assert await keeper_of(lender).tick() == 1
        assert lent(engine_url)["room", id_of(lender)] == 5
        for number in (6, 7):
            room.let_out("a")
            await until(lambda number=number: room.inside["b"] == number)  # type: ignore[misc]
        assert lent(engine_url)["room", id_of(lender)] == 3
        assert room.most == 10
        room.let_out("a", 3)
        room.let_out("b", 7)


def test_g8_no_job_overtakes_a_waiting_one_with_a_lent_slot() -> None:
    """Not even while a slot is free that is about to go back."""
    loans = Loans(ManualClock(), lambda: True)
    first, second, third = (fresh(**slots(20)) for _ in range(3))
    loans.belong_to(WorkerId(1))
    loans.add([Loan(*SLOT, 3)], [first])
    assert loans.passes([second]) == [True]
    loans.went(NOTHING, [SLOT], {SLOT})
    assert loans.passes([third]) == [False]
    assert loans.ended(claim_of(first)) == ["tenant:1"]
    assert loans.passes([third]) == [False]
    assert loans.spare([SLOT]) == ([Loan(*SLOT, 2)], [])


async def test_g8_when_no_job_waits_any_more_a_lent_slot_is_used_again(
    store: Store, other_desk: Desk, by_hand: None, engine_url: str
) -> None:
    """It was kept all the time, by jobs that ran in it."""
    room, desk = Room(Concurrency(10, name="room")), Desk(store)
    async with at_work(desk.store, room.app, queues="a") as lender, at_work(other_desk.store, room.app, queues="b"):
        await enter(store, "a", 5)
        await until(lambda: room.inside["a"] == 5)
        await enter(store, "b", 7)
        await standing(store, running=10, paused=2)
        assert await keeper_of(lender).tick() == 1
        room.let_out("b", 2)
        await until(lambda: room.ran["b"] == 7)
        assert query(engine_url, "SELECT key FROM {gate_wait}") == []
        assert await keeper_of(lender).tick() == 0
        [books] = lender.worker._parts.attempts.loans._accounts.values()
        room.let_out("a")
        await until(lambda: books.used == 4)
        asked = len(desk.asked)
        await enter(store, "a", 1)
        await until(lambda: room.ran["a"] == 6)
        assert len(desk.asked) == asked
        assert lent(engine_url) == {("room", id_of(lender)): 5}
        room.let_out("a", 5)
        room.let_out("b", 5)


async def test_g8_what_others_wait_for_goes_back_while_the_worker_asks_for_the_same_gate(
    store: Store, other_desk: Desk, by_hand: None, engine_url: str
) -> None:
    """Without a pause, because one question follows the other."""
    room, desk = Room(Concurrency(10, name="room")), Desk(store)
    async with at_work(desk.store, room.app, queues="a") as asks, at_work(other_desk.store, room.app, queues="b"):
        await enter(store, "a", 5)
        await until(lambda: room.inside["a"] == 5)
        asked = len(desk.asked)
        desk.may_ask.clear()
        await enter(store, "a", 1)
        await until(lambda: len(desk.asked) > asked)
        room.let_out("a", 5)
        await until(lambda: not asks.worker._parts.attempts.loans.are_used)
        await enter(store, "b", 7)
        await until(lambda: room.inside["b"] == 5)
        await standing(store, succeeded=5, running=6, paused=2)
        assert await keeper_of(asks).tick() == 1
        await until(lambda: room.inside["b"] == 7)
        assert ("room", id_of(asks)) not in lent(engine_url)
        desk.may_ask.set()
        await until(lambda: room.inside["a"] == 1)
        room.let_out("a")
        room.let_out("b", 7)


# Who stood in line asks


async def test_g8_a_job_that_waited_for_a_slot_leaves_the_line_when_it_runs(
    store: Store, by_hand: None, engine_url: str
) -> None:
    """Also where the worker has a slot for it that was lent."""
    room = Room(Concurrency(10, name="room"))
    async with at_work(store, room.app, queues="a", concurrency=20) as shift:
        await enter(store, "a", 5)
        await until(lambda: room.inside["a"] == 5)
        await enter(store, "a", 7)
        await standing(store, running=10, paused=2)
        room.let_out("a", 5)
        await until(lambda: not shift.worker._parts.attempts.loans.are_used)
        await standing(store, succeeded=5, running=5, paused=2)
        assert lent(engine_url) == {("room", id_of(shift)): 5}
        room.let_out("a", 2)
        await until(lambda: room.ran["a"] == 12)
        assert query(engine_url, "SELECT key FROM {gate_wait}") == []
        room.let_out("a", 5)
        await standing(store, succeeded=12)
    assert query(engine_url, "SELECT key FROM {gate_wait}") == []


async def test_g8_a_job_that_had_a_place_before_a_rate_leaves_it_when_it_starts(
    store: Store, clock: ManualClock, by_hand: None, on_clock: None, engine_url: str
) -> None:
    async with at_work(store, quick_app(Rate(12, "1s", name="api")), **PATIENT) as shift:
        await some(store, 3)
        await standing(store, succeeded=3)
        await some(store, 11)
        await standing(store, succeeded=12, paused=2)
        assert lent(engine_url) == {("api", id_of(shift)): 3}
        assert len(query(engine_url, "SELECT key FROM {gate_place}")) == 2
        clock.move(SECOND)
        await store.promote(100)
        await standing(store, succeeded=14)
        assert query(engine_url, "SELECT key FROM {gate_place}") == []


# What a worker leaves behind


async def test_g8_a_closing_worker_leaves_no_slots_behind_and_wakes_who_waits(
    store: Store, other_desk: Desk, by_hand: None, engine_url: str
) -> None:
    room = Room(Concurrency(10, name="room"))
    async with at_work(other_desk.store, room.app, queues="b") as stays:
        async with at_work(store, room.app, queues="a") as closes:
            await enter(store, "a", 5)
            await until(lambda: room.inside["a"] == 5)
            room.let_out("a", 2)
            await standing(store, succeeded=2, running=3)
            await enter(store, "b", 6)
            await standing(store, succeeded=2, running=8, paused=1)
            gone = id_of(closes)
            assert lent(engine_url) == {("room", gone): 5}
        assert ("room", gone) not in lent(engine_url)
        await until(lambda: room.inside["b"] == 6)
        room.let_out("b", 6)
        await until(lambda: not stays.worker._parts.attempts.loans.are_used)


async def test_starts_that_a_closing_worker_has_used_count_until_their_time_is_over(
    store: Store, clock: ManualClock, by_hand: None, on_clock: None, engine_url: str
) -> None:
    async with at_work(store, quick_app(Rate(100, "10s", name="api")), **PATIENT) as shift:
        await run_one(store, shift)
        name = "api", id_of(shift)
        assert lent(engine_url) == {name: 3}
    clock.move(9 * SECOND)
    await store.recall_loans()
    assert lent(engine_url) == {name: 1}
    clock.move(SECOND)
    await store.recall_loans()
    assert lent(engine_url) == {}

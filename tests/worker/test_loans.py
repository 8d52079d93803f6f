"""A worker uses what it was lent of a gate without asking, and gives back what it does not need (G8)."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any, cast

import pytest
from tests.conftest import OpenStore
from tests.support.behind import query
from tests.support.bench import a_claim
from tests.support.gate_requests import rate, slots
from tests.support.gates import PATIENT, paused, some, standing, views
from tests.support.jobs import HOUR, MINUTE, SECOND, claim_some, employ, enqueue
from tests.support.waiting import until
from tests.support.working import Shift, at_work, found, seen

from perdure import App, Concurrency, JobState, Rate
from perdure.clock import ManualClock
from perdure.domain.gate import GateChanges, GateRequest, GateState, Held, Loan, LoanKey
from perdure.domain.ids import JobId, WorkerId
from perdure.errors import StoreUnavailable
from perdure.events import Emitter, StoreTrouble
from perdure.policy.gatekeeping import gatekeeper
from perdure.policy.lending import SLOTS
from perdure.storage.gates import Gatekeeper
from perdure.storage.port import Store
from perdure.worker.loan_keeper import LoanKeeper
from perdure.worker.loans import Loans, Spare

UNUSED = "sqlite:///unused.db"
SLOT = ("tenant:1", SLOTS)
NOTHING = Spare([], [])


class Desk:
    """A store that notes who asks and what is lent, and can be slow, away, or lose its answers."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.asked: list[int] = []
        self.passed = 0
        self.lent: Counter[WorkerId] = Counter()
        self.returned: list[Spare] = []
        self.may_ask, self.may_answer, self.may_return = asyncio.Event(), asyncio.Event(), asyncio.Event()
        for each in (self.may_ask, self.may_answer, self.may_return):
            each.set()
        self.is_away = False
        self.answers_lost = 0
        """So many answers will get lost after all was written."""
        self.answers_late = 0
        """So many will get lost before it was, which is made up for by `write_late`."""
        self.returns_late = 0
        """The same for what goes back."""
        self._late: list[Callable[[], Awaitable[object]]] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    @property
    def store(self) -> Store:
        return cast("Store", self)

    async def pass_gates(
        self, requests: Sequence[GateRequest], decide: Gatekeeper, borrower: WorkerId | None = None
    ) -> list[Held | None]:
        def note(state: GateState) -> tuple[list[Held | None], GateChanges]:
            answers, changes = decide(state)
            if borrower is not None:
                self.lent[borrower] += sum(loan.number for loan in changes.loans)
            return answers, changes

        self.asked.append(len(requests))
        await self.may_ask.wait()
        if self.is_away:
            raise StoreUnavailable("gone")
        if self.answers_late:
            self.answers_late -= 1
            self._late.append(lambda: self._store.pass_gates(requests, note, borrower))
            raise StoreUnavailable("gone, and what was asked is on its way")
        answers = await self._store.pass_gates(requests, note, borrower)
        await self.may_answer.wait()
        if self.answers_lost:
            self.answers_lost -= 1
            raise StoreUnavailable("gone before it could answer")
        self.passed += answers.count(None)
        return answers

    async def return_loans(
        self, borrower: WorkerId, back: Collection[Loan], left: Collection[Loan] = ()
    ) -> set[LoanKey]:
        self.returned.append(Spare(list(back), list(left)))
        await self.may_return.wait()
        if self.returns_late:
            self.returns_late -= 1
            self._late.append(lambda: self._store.return_loans(borrower, back, left))
            raise StoreUnavailable("gone, and what goes back is on its way")
        return await self._store.return_loans(borrower, back, left)

    async def write_late(self) -> None:
        late, self._late = self._late, []
        for write in late:
            await write()


class Room:
    """Jobs that stay inside until they are let out, by the queue that they came from."""

    def __init__(self, *gates: Concurrency | Rate) -> None:
        self.app = App(UNUSED)
        self.inside: Counter[str] = Counter()
        self.most = 0
        self.ran: Counter[str] = Counter()
        self._exits: dict[str, asyncio.Semaphore] = {}

        @self.app.job(gates=list(gates))
        async def greet(name: str) -> None:
            self.inside[name] += 1
            self.ran[name] += 1
            self.most = max(self.most, self.inside.total())
            try:
                await self._exit(name).acquire()
            finally:
                self.inside[name] -= 1

    def let_out(self, name: str, number: int = 1) -> None:
        for _ in range(number):
            self._exit(name).release()

    def _exit(self, name: str) -> asyncio.Semaphore:
        return self._exits.setdefault(name, asyncio.Semaphore(0))


async def enter(store: Store, queue: str, number: int) -> list[JobId]:
    """Hand in so many jobs that tell by their name which queue they come from."""
    return await some(store, number, queue=queue, args=f'{{"name":"{queue}"}}')


@pytest.fixture
def by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is given back unless the test says so."""
    monkeypatch.setattr(LoanKeeper, "interval", HOUR)


@pytest.fixture
def on_clock(monkeypatch: pytest.MonkeyPatch, clock: ManualClock) -> None:
    """Workers measure time by the clock of the test."""
    monkeypatch.setattr("tests.support.working.SystemClock", lambda: clock)


def keeper_of(shift: Shift) -> LoanKeeper:
    return shift.worker._loan_keeper


def id_of(shift: Shift) -> WorkerId:
    assert shift.worker._worker_id is not None
    return shift.worker._worker_id


def lent(url: str) -> dict[tuple[str, int], int]:
    """What is lent by gate and worker, as it is written."""
    found = query(url, "SELECT key, worker_id, number FROM {gate_loan}")
    return {(key, worker_id): number for key, worker_id, number in found}


async def run_one(store: Store, shift: Shift) -> None:
    """One job from its beginning to its end, until the worker knows that it has ended."""
    await seen(store, await enqueue(store), JobState.SUCCEEDED)
    await until(lambda: not shift.worker._loans.are_used)


def fresh(**gates: Any) -> GateRequest:
    """A job that comes straight from where it was enqueued."""
    return GateRequest(claim=a_claim("greet", is_fresh=True), **gates)


def claim_of(request: GateRequest) -> tuple[JobId, int]:
    return request.claim.job_id, request.claim.token


def quick_app(*gates: Concurrency | Rate) -> App:
    app = App(UNUSED)

    @app.job(gates=list(gates))
    async def greet(name: str) -> None:
        return None

    return app


# Nobody asks for what was lent


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
        await until(lambda: not shift.worker._loans.are_used)
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
        clock.move(10 * SECOND - timedelta(milliseconds=1))
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
    """Time moves only while nobody starts, so that the instant of each start is known."""
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
            clock.move(SECOND / 4)
            await store.promote(100)
        while len(starts) < 4 * 2 * (2 + 3 + 9 + 1):
            await found(is_settled)
            clock.move(SECOND / 4)
            await store.promote(100)
        assert len(one.lent) == len(two.lent) == 1
    assert len(starts) == 120
    assert one.passed + two.passed < 120
    for earlier, later in zip(starts, starts[20:], strict=False):
        assert later - earlier >= SECOND


async def test_g8_two_workers_that_borrow_never_run_more_than_n_at_once_and_all_finish(
    real_time_store: Store,
) -> None:
    app, inside, most, ran = App(UNUSED), set[object](), 0, Counter[str]()

    @app.job(gates=[Concurrency(20, name="room")])
    async def greet(name: str) -> None:
        nonlocal most
        me = object()
        inside.add(me)
        most = max(most, len(inside))
        await asyncio.sleep(0.02)
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
            await standing(real_time_store, succeeded=300)
    finally:
        await other.close()
    assert ran == {"a": 150, "b": 150}
    assert 10 < most <= 20


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
        await until(lambda: not shift.worker._loans.are_used)
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
        for wait in (SECOND, 8 * SECOND, SECOND, SECOND):
            clock.move(wait)
            await keeper_of(shift).tick()
            left.append(lent(engine_url).get(name, 0))
        assert left == [3, 1, 1, 1, 0]


@pytest.fixture
async def other_desk(other_store: OpenStore) -> Desk:
    """The store of another worker."""
    return Desk(await other_store())


async def test_g8_a_job_that_waits_runs_when_an_idle_worker_looks_after_its_loans(
    store: Store, other_desk: Desk, by_hand: None, engine_url: str
) -> None:
    """The clock stands still: nobody looks again by itself."""
    room = Room(Concurrency(10, name="room"))
    async with at_work(store, room.app, queues="a") as idle, at_work(other_desk.store, room.app, queues="b"):
        await enter(store, "a", 5)
        await until(lambda: room.inside["a"] == 5)
        room.let_out("a", 5)
        await until(lambda: not idle.worker._loans.are_used)
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


def test_g8_where_a_job_waits_nobody_passes_it_by_with_a_lent_slot() -> None:
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


async def test_g8_where_nobody_waits_any_more_a_lent_slot_is_used_again(
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
        [books] = lender.worker._loans._accounts.values()
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
        await until(lambda: not asks.worker._loans.are_used)
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
        await until(lambda: not shift.worker._loans.are_used)
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
        await until(lambda: not stays.worker._loans.are_used)


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


# The worker and its books


async def test_g8_a_worker_that_lost_its_id_borrows_anew(store: Store, by_hand: None, engine_url: str) -> None:
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
        assert worker._heartbeat is not None
        await worker._heartbeat.stop()
        worker._lost()
        assert not worker._loans.are_any
        new = await until(lambda: worker._worker_id)
        assert new != old
        await enqueue(store)
        await until(lambda: len(inside) == 2)
        assert lent(engine_url) == {("room", old): 1, ("room", new): 1}
        [books] = worker._loans._accounts.values()
        assert (books.number, books.used) == (1, 1)
        [stale] = [running.claim for running in worker._executor.running if running.claim.job_id == first]
        worker._reports.ended(stale, None)
        assert (books.number, books.used) == (1, 1)
        await keeper_of(shift).tick()
        assert lent(engine_url) == {("room", old): 1, ("room", new): 1}
        may_end.set()
        await until(lambda: not worker._loans.are_used)
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
    """It may have been declared dead, and what it was lent may count for nobody any more."""
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
        heartbeat = shift.worker._heartbeat
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
        await until(lambda: not shift.worker._loans.are_used)
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


async def test_g8_an_answer_that_was_lost_leaves_nothing_lent_that_nobody_knows_of(
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
        assert not shift.worker._loans.are_any
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
        assert not shift.worker._loans.are_any
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


def used(shift: Shift) -> tuple[int, int]:
    """How much a worker has by its own books, and how much of that it uses."""
    [account] = shift.worker._loans._accounts.values()
    return account.number, account.used


async def test_many_loans_go_back_a_part_at_a_time() -> None:
    """So that nobody has to wait for all of them."""
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

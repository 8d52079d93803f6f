"""A worker takes work up step by step (✿), and looks for it as often as it is told to (C3)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any, cast

import pytest
from tests.support.builders.jobs import MINUTE, SECOND
from tests.support.timer import ManualTimer
from tests.support.waiting import until

from perdure import App, JobState, Queue, WorkerSettings
from perdure.clock import ManualClock
from perdure.domain.jobs.ids import WorkerId
from perdure.domain.jobs.job import Claim
from perdure.domain.worker import Phase
from perdure.errors import StoreUnavailable
from perdure.events import Emitter, Event, StoreRecovered, StoreTrouble, WorkerOpening
from perdure.lifecycle.outage import Outage
from perdure.storage.port import Store
from perdure.storage.records import Wanted
from perdure.worker.claiming.fetcher import Fetcher, FetchOwner
from perdure.worker.claiming.slots import Slots
from perdure.worker.claiming.slow_start import Opener, Pace, SlowStart
from perdure.worker.wiring.worker import build_worker
from perdure.worker.worker import Worker


def slots_of(clock: ManualClock, **settings: Any) -> tuple[Slots, SlowStart]:
    chosen = WorkerSettings(**{"queues": "default"} | settings)
    slow_start = SlowStart(chosen, clock)
    return Slots(chosen.queues, chosen.concurrency, chosen.claim_batch, slow_start), slow_start


def fill(slots: Slots) -> dict[str, int]:
    """Take all that is wanted; how many of each queue."""
    wanted = {want.queue: want.limit for want in slots.wanted()}
    for queue, limit in wanted.items():
        for _ in range(limit):
            slots.take(queue)
    return wanted


def test_a_worker_grows_from_one_job_to_its_full_number(clock: ManualClock) -> None:
    slots, slow_start = slots_of(clock, concurrency=11, slow_start="10s")
    clock.move(MINUTE)  # before it opens no time counts
    assert fill(slots) == {"default": 1}
    slow_start.begin()
    assert (fill(slots), slots.is_limited()) == ({}, True)
    for running in range(2, 12):
        clock.move(SECOND)
        assert not slots.is_limited()
        assert fill(slots) == {"default": 1}
        assert (slots.total, slots.is_limited()) == (running, True)
    clock.move(MINUTE)
    assert (fill(slots), slots.is_limited(), slow_start.is_over) == ({}, True, True)
    slots.release("default")
    assert (fill(slots), slots.is_limited()) == ({"default": 1}, True)


def test_a_queue_grows_by_its_own_ramp_and_holds_up_no_other(clock: ManualClock) -> None:
    weak = Queue("weak", concurrency=5, slow_start="8s")
    slots, slow_start = slots_of(clock, concurrency=20, queues=(weak, Queue("strong")))
    slow_start.begin()
    assert (fill(slots), slots.is_limited()) == ({"weak": 1, "strong": 19}, True)
    for expected in (2, 2, 0):
        clock.move(4 * SECOND)
        for _ in range(5):
            slots.release("strong")
        assert fill(slots) == {"weak": expected, "strong": 5 - expected} if expected else {"strong": 5}


def test_a_queue_without_a_limit_grows_to_that_of_the_worker(clock: ManualClock) -> None:
    slots, slow_start = slots_of(clock, concurrency=9, queues=(Queue("weak", slow_start="8s"),))
    slow_start.begin()
    clock.move(4 * SECOND)
    assert fill(slots) == {"weak": 5}
    clock.move(4 * SECOND)
    assert fill(slots) == {"weak": 4}


def test_without_a_slow_start_all_is_allowed_at_once(clock: ManualClock) -> None:
    slots, slow_start = slots_of(clock, concurrency=9)
    slow_start.begin()
    assert (fill(slots), slow_start.is_over, slow_start.ramps) == ({"default": 9}, True, ())


def opener_of(clock: ManualClock, **settings: Any) -> tuple[Opener, SlowStart, list[Event], list[str]]:
    slow_start = SlowStart(WorkerSettings(**settings), clock)
    events, calls = list[Event](), list[str]()
    emitter = Emitter()
    emitter.subscribe(events.append)
    opener = Opener("anna", slow_start, emitter, lambda: calls.append("grown"), lambda: calls.append("full"))
    return opener, slow_start, events, calls


async def test_the_ramp_is_reported_whenever_it_has_doubled_and_when_it_is_full(clock: ManualClock) -> None:
    opener, slow_start, events, calls = opener_of(clock, concurrency=101, slow_start="100s")
    slow_start.begin()
    while not await opener.tick():
        clock.move(SECOND)
    assert events == [WorkerOpening("anna", "", limit, 101) for limit in (1, 2, 4, 8, 16, 32, 64, 101)]
    assert calls == ["grown"] * 101 + ["full"]


async def test_a_check_that_finds_no_growth_wakes_no_fetcher(clock: ManualClock) -> None:
    opener, slow_start, events, calls = opener_of(clock, concurrency=3, slow_start="10s")
    slow_start.begin()
    for _ in range(5):
        assert not await opener.tick()
        clock.move(timedelta(milliseconds=100))
    assert (len(events), calls) == (1, ["grown"])


async def test_each_queue_reports_its_own_ramp(clock: ManualClock) -> None:
    queues = (Queue("weak", concurrency=3, slow_start="2s"), Queue("strong"))
    opener, slow_start, events, calls = opener_of(clock, concurrency=2, slow_start="4s", queues=queues)
    slow_start.begin()
    while not await opener.tick():
        clock.move(SECOND)
    told = [(event.queue, event.limit, event.of) for event in events if isinstance(event, WorkerOpening)]
    assert told == [("", 1, 2), ("weak", 1, 3), ("weak", 2, 3), ("weak", 3, 3), ("", 2, 2)]
    assert calls[-1] == "full"


async def test_a_worker_without_a_ramp_is_full_at_the_first_look(clock: ManualClock) -> None:
    opener, slow_start, events, calls = opener_of(clock, concurrency=1, slow_start="1h")
    slow_start.begin()
    await asyncio.wait_for(opener.run(), 10)
    assert (events, calls) == ([], ["full"])


def test_c3_the_pace_follows_what_was_done_and_how_long_it_is_open(clock: ManualClock) -> None:
    settings = WorkerSettings(poll="30s", polling="ramp")
    slow_start, finished = SlowStart(settings, clock), [0]
    pace = Pace(settings, slow_start, lambda: finished[0])
    clock.move(10 * MINUTE)
    slow_start.begin()
    assert pace() == 1
    finished[0] = 20
    clock.move(2 * MINUTE - SECOND)
    assert pace() == 1
    clock.move(SECOND)
    assert pace() == 30
    finished[0] = 19
    assert pace() == 1


@pytest.mark.parametrize(("polling", "expected"), [("fixed", 30.0), ("none", None)])
def test_c3_a_pace_that_never_changes(clock: ManualClock, polling: str, expected: float | None) -> None:
    settings = WorkerSettings(poll="30s", polling=polling)
    assert Pace(settings, SlowStart(settings, clock), lambda: 0)() == expected


class Trickle:
    """A store that has one job at each look, and fails as often as it is told to."""

    def __init__(self, failures: int = 0) -> None:
        self.looks = 0
        self.failures = failures

    async def claim(self, _: WorkerId, __: Sequence[Wanted]) -> list[Claim]:
        self.looks += 1
        if self.failures:
            self.failures -= 1
            raise StoreUnavailable("the server is gone")
        return []


@asynccontextmanager
async def fetching(store: Trickle, poll: float | None) -> AsyncIterator[tuple[Fetcher, list[Event]]]:
    events = list[Event]()
    emitter = Emitter()
    emitter.subscribe(events.append)
    slots = Slots((Queue("default"),), 10, 10)
    owner = FetchOwner(start=lambda _: None, give_back=lambda _: None, poll=lambda: poll)
    fetcher = Fetcher(cast("Store", store), slots, emitter, owner)
    fetcher.worker_id = WorkerId(1)
    task = asyncio.create_task(fetcher.run())
    try:
        yield fetcher, events
    finally:
        fetcher.stop()
        await asyncio.wait_for(task, 10)


async def test_c3_a_worker_that_does_not_poll_looks_only_when_woken() -> None:
    store = Trickle()
    async with fetching(store, None) as (fetcher, _):
        await until(lambda: store.looks == 1)
        with pytest.raises(AssertionError):
            await until(lambda: store.looks > 1, within=0.2)
        fetcher.wake()
        await until(lambda: store.looks == 2)


async def test_c3_a_worker_that_polls_looks_by_itself() -> None:
    store = Trickle()
    async with fetching(store, 0.01):
        await until(lambda: store.looks > 3)


async def test_c4_the_fetcher_backs_off_while_the_database_is_away(monkeypatch: pytest.MonkeyPatch) -> None:
    """Short waits for four errors, then 1 s doubling to 30 s; the first success resets it."""
    timer = ManualTimer()
    monkeypatch.setattr(Outage, "timer", timer)
    store = Trickle(failures=11)
    async with fetching(store, None) as (fetcher, events):
        await timer.move(0.8 + 31 + 29.9 + 30)
        assert store.looks == 11, "the last wait is not over yet"
        await timer.move(0.1)
        assert store.looks == 12
        store.failures = 1
        fetcher.wake()
        await timer.move(0.2)
        assert store.looks == 14
    waits = [event.wait for event in events if isinstance(event, StoreTrouble)]
    assert waits == [0.2, 0.2, 0.2, 0.2, 1, 2, 4, 8, 16, 30, 30, 0.2]
    assert [event.failures for event in events if isinstance(event, StoreRecovered)] == [11, 1]


class Crowd:
    """Jobs that all stay until they are let go, and how many are there at once."""

    def __init__(self) -> None:
        self.here = 0
        self.let_go = asyncio.Event()

    async def stay(self) -> None:
        self.here += 1
        try:
            await self.let_go.wait()
        finally:
            self.here -= 1


@asynccontextmanager
async def at_work(app: App, settings: WorkerSettings, clock: ManualClock) -> AsyncIterator[Worker]:
    worker = build_worker(store=await app.store(), kinds=app.kinds, settings=settings, emitter=app.events, clock=clock)
    running = asyncio.create_task(worker.run())
    try:
        await asyncio.wait_for(worker.opened.wait(), 30)
        yield worker
    finally:
        worker.stop()
        await asyncio.wait_for(running, 30)


async def shows(store: Store, phase: Phase) -> None:
    """Wait until the one worker is seen to be about this."""
    async with asyncio.timeout(30):
        while [view.phase for view in await store.workers()] != [phase]:
            await asyncio.sleep(0.01)


async def test_a_real_worker_takes_up_work_step_by_step(engine_url: str, clock: ManualClock) -> None:
    """As the clock moves, and not before; polling is no help, since nothing looks by itself for an hour."""
    crowd = Crowd()
    async with App(engine_url, clock=clock) as app:
        heard = list[Event]()
        app.subscribe(heard.append)
        stay = app.job(name="stay")(crowd.stay)
        store = await app.store()
        await app.enqueue_many(stay.call() for _ in range(12))
        settings = WorkerSettings(concurrency=9, slow_start="8s", poll="1h")
        async with at_work(app, settings, clock) as worker:
            for allowed in range(1, 10):
                await until(lambda allowed=allowed: crowd.here == allowed)  # type: ignore[misc]
                assert worker.running == allowed
                await shows(store, Phase.OPENING if allowed < 9 else Phase.OPEN)
                with pytest.raises(AssertionError):
                    await until(lambda allowed=allowed: crowd.here > allowed, within=0.15)  # type: ignore[misc]
                clock.move(SECOND)
            crowd.let_go.set()
            await until(lambda: worker.finished == 12)
        assert {count.state: count.jobs for count in await store.counts()} == {JobState.SUCCEEDED: 12}
    told = [event for event in heard if isinstance(event, WorkerOpening)]
    assert [(event.queue, event.limit, event.of) for event in told] == [("", n, 9) for n in (1, 2, 4, 8, 9)]


async def test_a_worker_that_lost_its_lease_does_not_start_slowly_again(engine_url: str, clock: ManualClock) -> None:
    """It is warm, and its load was borne before: it goes on in full under its new id."""
    crowd = Crowd()
    async with App(engine_url, clock=clock) as app:
        stay = app.job(name="stay")(crowd.stay)
        store = await app.store()
        settings = WorkerSettings(concurrency=4, slow_start="8s", poll="50ms", heartbeat="20ms", lease="1h")
        async with at_work(app, settings, clock) as worker:
            clock.move(8 * SECOND)
            [before] = await store.workers()
            await store.retire(before.id)
            await until(lambda: worker._parts.membership.worker_id not in {before.id, None})
            await app.enqueue_many(stay.call() for _ in range(6))
            await until(lambda: crowd.here == 4)
            assert worker.running == 4
            crowd.let_go.set()
            await until(lambda: worker.finished == 6)

"""The watchdog: what lasts too long is told once, again when it has doubled, and with the stack that is to blame."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable
from datetime import timedelta
from typing import Any

import pytest
from tests.support.waiting import until

from perdure.clock import Clock, ManualClock, SystemClock
from perdure.events import Emitter, Event, EventLoopBlocked, HeartbeatStuck, LoopFailed, StoreSlow
from perdure.lifecycle.process.stacks import Attempt, Occupied
from perdure.lifecycle.process.watchdog import StoreCall, Watchdog, WatchdogLimits

LONG_ENOUGH = 30.0


class Kennel:
    """A watchdog, the events that it emits, and the threads that they came from."""

    def __init__(self, clock: Clock, blocked_after: float = 2.0) -> None:
        emitter = Emitter()
        self.events: list[Event] = []
        self.threads: list[str] = []
        self.barked = threading.Event()
        emitter.subscribe(self._hear)
        self.call = StoreCall("claim")
        self.occupied: list[Occupied] = []
        self.watchdog = Watchdog(
            asyncio.get_running_loop(),
            emitter,
            clock,
            limits=WatchdogLimits(
                blocked_after=timedelta(seconds=blocked_after),
                slow_store_after=timedelta(seconds=10),
                beat_within=timedelta(seconds=20),
            ),
            calls=[self.call],
            occupied=lambda: self.occupied,
        )

    def _hear(self, event: Event) -> None:
        self.events.append(event)
        self.threads.append(threading.current_thread().name)
        self.barked.set()

    def run_here(self) -> None:
        """Let the current task count as an attempt."""
        attempt = Attempt(job_id="0190", kind="greet", attempt=1, seconds=2.5, mode="task")
        self.occupied = [Occupied(attempt, task=asyncio.current_task())]


class Hand:
    """Moves the clock in small steps, and lets the watchdog look after each; the loop runs only if asked to."""

    def __init__(self, kennel: Kennel, clock: ManualClock) -> None:
        self._watchdog = kennel.watchdog
        self._clock = clock

    def block(self, seconds: float) -> None:
        for _ in range(round(seconds * 2)):
            self._clock.move(timedelta(seconds=0.5))
            self._watchdog.look()

    async def go_on(self, seconds: float = 1.0) -> None:
        for _ in range(round(seconds * 2)):
            await asyncio.sleep(0)
            self._clock.move(timedelta(seconds=0.5))
            self._watchdog.look()
        for _ in range(3):
            await asyncio.sleep(0)


@pytest.fixture
async def kennel(clock: ManualClock) -> Kennel:
    return Kennel(clock)


@pytest.fixture
async def hand(kennel: Kennel, clock: ManualClock) -> Hand:
    kennel.watchdog.look()
    hand = Hand(kennel, clock)
    await hand.go_on()
    return hand


@pytest.fixture
async def watching() -> AsyncIterator[Callable[[float], Kennel]]:
    started: list[Kennel] = []

    def start(blocked_after: float) -> Kennel:
        kennel = Kennel(SystemClock(), blocked_after)
        kennel.watchdog.start()
        started.append(kennel)
        return kennel

    yield start
    for kennel in started:
        kennel.watchdog.stop()


def seconds(events: list[Event], kind: type[Any]) -> list[float]:
    return [event.seconds for event in events if isinstance(event, kind)]


async def test_c13_a_loop_that_runs_is_not_worth_a_word(kennel: Kennel, hand: Hand) -> None:
    await hand.go_on(60)
    assert kennel.events == []


async def test_c13_a_blocked_loop_is_reported_at_its_limit_at_every_doubling_and_at_its_end(
    kennel: Kennel, hand: Hand
) -> None:
    hand.block(1.5)
    assert kennel.events == []
    hand.block(8)
    assert seconds(kennel.events, EventLoopBlocked) == [2, 4, 8]
    await hand.go_on()
    last = kennel.events[-1]
    assert isinstance(last, EventLoopBlocked)
    assert (last.seconds, "over" in last.stack) == (9.5, True)
    await hand.go_on(60)
    assert len(kennel.events) == 4


async def test_c13_the_stack_shows_who_blocks(kennel: Kennel, hand: Hand) -> None:
    def guilty() -> None:
        hand.block(3)

    guilty()
    [event] = kennel.events
    assert isinstance(event, EventLoopBlocked)
    assert "guilty" in event.stack
    assert "base_events.py" not in event.stack, "how the loop came there helps nobody"


async def test_c13_a_handler_that_blocks_is_reported_by_its_job(kennel: Kennel, hand: Hand) -> None:
    kennel.run_here()
    hand.block(3)
    [event] = kennel.events
    assert isinstance(event, EventLoopBlocked)
    assert event.stack.splitlines()[0] == "job 0190 kind greet attempt 1, for 2.5 s"


async def test_c13_the_same_again_within_seconds_is_not_reported_again(kennel: Kennel, hand: Hand) -> None:
    hand.block(2.5)
    await hand.go_on()
    told = len(kennel.events)
    hand.block(2.5)
    await hand.go_on()
    assert len(kennel.events) == told
    hand.block(6)
    assert len(kennel.events) == told + 1, "something longer is"
    await hand.go_on(20)
    told = len(kennel.events)
    hand.block(2.5)
    assert len(kennel.events) == told + 1, "and so is the same after a while"


async def test_c13_a_watchdog_that_overslept_reports_it(kennel: Kennel, hand: Hand, clock: ManualClock) -> None:
    """Nothing can run while C code keeps the interpreter: not even the watchdog, which finds out afterwards."""
    kennel.run_here()
    clock.move(timedelta(seconds=5))
    kennel.watchdog.look()
    await asyncio.sleep(0)
    [event] = kennel.events
    assert isinstance(event, EventLoopBlocked)
    assert (event.seconds, "kept the interpreter" in event.stack, "job 0190" in event.stack) == (4.5, True, True)


async def test_c13_a_slow_call_to_the_store_is_reported_with_what_it_waits_for(kennel: Kennel, hand: Hand) -> None:
    answer = asyncio.Event()

    async def claim() -> None:
        with kennel.call:
            await answer.wait()

    task = asyncio.create_task(claim())
    await hand.go_on(9)
    assert kennel.events == []
    await hand.go_on(15)
    assert seconds(kennel.events, StoreSlow) == [10, 20]
    [event, _] = kennel.events
    assert isinstance(event, StoreSlow)
    assert (event.what, "await answer.wait()" in event.stack) == ("claim", True)
    answer.set()
    await task
    await hand.go_on(60)
    assert len(kennel.events) == 2


async def test_c13_a_slow_call_shows_what_the_threads_of_sqlite_do(kennel: Kennel, hand: Hand) -> None:
    done = threading.Event()
    writer = threading.Thread(target=done.wait, name="perdure-sqlite-writer")
    writer.start()
    with kennel.call:
        await hand.go_on(11)
    done.set()
    writer.join()
    [event] = kennel.events
    assert isinstance(event, StoreSlow)
    assert "thread perdure-sqlite-writer" in event.stack


async def test_c13_many_quick_calls_are_not_one_slow_one(kennel: Kennel, hand: Hand) -> None:
    for _ in range(40):
        with kennel.call:
            await hand.go_on()
    assert kennel.events == []


async def test_a_failed_call_is_over(kennel: Kennel, hand: Hand) -> None:
    with pytest.raises(OSError, match="gone"), kennel.call:
        raise OSError("gone")
    await hand.go_on(30)
    assert kennel.events == []


class Beats:
    """A heartbeat that beats when told to."""

    def __init__(self) -> None:
        self.beats = 0
        self.call = StoreCall("heartbeat")
        self.ident = threading.get_ident()


async def test_c13_a_heartbeat_that_gets_no_answer_is_reported_with_its_stack(kennel: Kennel, hand: Hand) -> None:
    heartbeat = kennel.watchdog.heartbeat = Beats()
    for _ in range(6):
        await hand.go_on(10)
        heartbeat.beats += 1
    assert kennel.events == []
    await hand.go_on(21)
    [event] = kennel.events
    assert isinstance(event, HeartbeatStuck)
    assert (event.seconds, "the heartbeat's thread" in event.stack, "go_on" in event.stack) == (20, True, True)


async def test_c13_a_beat_under_way_for_too_long_is_a_slow_call(kennel: Kennel, hand: Hand) -> None:
    heartbeat = kennel.watchdog.heartbeat = Beats()
    with heartbeat.call:
        await hand.go_on(11)
    assert [event.what for event in kennel.events if isinstance(event, StoreSlow)] == ["heartbeat"]


async def test_c13_a_heartbeat_that_was_given_up_is_not_missed(kennel: Kennel, hand: Hand) -> None:
    kennel.watchdog.heartbeat = Beats()
    await hand.go_on(10)
    kennel.watchdog.heartbeat = None
    await hand.go_on(60)
    assert kennel.events == []


async def test_c13_while_the_loop_answers_events_come_on_the_loop(kennel: Kennel, hand: Hand) -> None:
    kennel.watchdog.heartbeat = Beats()
    thread = threading.Thread(target=hand.block, args=(25,))
    await hand.go_on()
    thread.start()
    await asyncio.to_thread(thread.join)
    await hand.go_on()
    assert threading.current_thread().name in kennel.threads


async def test_c13_a_real_loop_blocked_in_python_is_reported_while_it_is_blocked(
    watching: Callable[[float], Kennel],
) -> None:
    kennel = watching(0.1)
    await asyncio.sleep(0)
    deadline = time.monotonic() + LONG_ENOUGH

    def spins() -> None:
        while not kennel.barked.is_set() and time.monotonic() < deadline:
            pass

    spins()
    event = kennel.events[0]
    assert isinstance(event, EventLoopBlocked)
    assert ("spins" in event.stack, kennel.threads[0]) == (True, "perdure-watchdog")


async def test_c13_a_real_loop_blocked_in_c_is_reported_while_it_is_blocked(
    watching: Callable[[float], Kennel],
) -> None:
    kennel = watching(0.1)
    await asyncio.sleep(0)
    assert kennel.barked.wait(LONG_ENOUGH)
    event = kennel.events[0]
    assert isinstance(event, EventLoopBlocked)
    assert "kennel.barked.wait(LONG_ENOUGH)" in event.stack


async def test_c13_c_code_that_keeps_the_interpreter_is_reported_as_soon_as_it_lets_go(
    watching: Callable[[float], Kennel],
) -> None:
    kennel = watching(0.1)
    kennel.run_here()
    await asyncio.sleep(0)

    def counts() -> None:
        sum(range(30_000_000))

    for _ in range(20):
        counts()
        if kennel.events:
            break
    event = await until(lambda: kennel.events[0] if kennel.events else None)
    assert isinstance(event, EventLoopBlocked)
    assert ("counts" in event.stack, "job 0190" in event.stack) == (True, True)


async def test_a_watchdog_outlives_what_goes_wrong_in_a_look(watching: Callable[[float], Kennel]) -> None:
    kennel = watching(0.2)
    kennel.watchdog.heartbeat = object()  # type: ignore[assignment]  # no heartbeat at all
    failed = await until(lambda: [event for event in kennel.events if isinstance(event, LoopFailed)][1:])
    assert "AttributeError" in failed[0].error


def test_a_watchdog_ends_with_its_loop() -> None:
    async def start() -> Watchdog:
        kennel = Kennel(SystemClock(), 0.1)
        kennel.watchdog.start()
        return kennel.watchdog

    watchdog = asyncio.run(start())
    watchdog._thread.join(LONG_ENOUGH)
    assert not watchdog._thread.is_alive()

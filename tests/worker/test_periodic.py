"""Functions of the app that come round: how they are declared, where they run, and who of a fleet calls them."""

from __future__ import annotations

import asyncio
import contextvars
import functools
import logging
import threading
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import pytest
from tests.support.programs.blocker import Blocker
from tests.support.timer import ManualTimer, settle
from tests.support.waiting import until

from perdure.clock import ManualClock
from perdure.errors import SettingsError, StillRunning, StoreUnavailable
from perdure.events import Emitter, Event, LeadLost, LeadTaken, LoopFailed, LoopOverran, LoopSkipped
from perdure.lifecycle.loops.crew import Loops
from perdure.storage.port import Store
from perdure.worker.periodic import Per, PeriodicLoop, periodic

SECOND = timedelta(seconds=1)


def sweep() -> None:
    """A function that takes nothing."""


class Process:
    """One worker process's part: its timer, its events, its loop."""

    def __init__(self, function: Callable[[], Any], every: str = "10s", **declared: Any) -> None:
        self.told: list[Event] = []
        self.emitter = Emitter()
        self.emitter.subscribe(self.told.append)
        self.timer = ManualTimer()
        self.declared = periodic(function, every, name="sweep", **{"jitter": 0, **declared})
        self.loop = PeriodicLoop(self.declared, self.emitter)
        self.loop.timer = self.timer

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Loops]:
        loops = Loops([self.loop], self.timer)
        loops.start()
        await settle()
        yield loops
        await loops.wait_for_completion()

    def told_of(self, kind: type[Event]) -> list[Any]:
        return [event for event in self.told if isinstance(event, kind)]


def test_what_is_declared_is_kept() -> None:
    made = periodic(sweep, "2m", limit="90s", at_start=False, jitter=0.2, per="fleet")
    assert made.name == "sweep"
    assert made.function is sweep
    assert (made.every, made.limit) == (timedelta(minutes=2), timedelta(seconds=90))
    assert (made.at_start, made.jitter, made.per) == (False, 0.2, Per.FLEET)


def test_a17_the_limit_is_the_interval_unless_given() -> None:
    made = periodic(sweep, "2m")
    assert made.limit == timedelta(minutes=2)
    assert (made.at_start, made.jitter, made.per) == (True, 0.1, Per.PROCESS)


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"every": "500ms"}, r"^every of sweep must be at least 1s, got 500ms$"),
        ({"every": 0}, r"^every of sweep must be at least 1s, got 0s$"),
        ({"every": "now and then"}, r"^every of sweep is not a duration"),
        ({"limit": 0}, r"^limit of sweep must be more than 0s, got 0s$"),
        ({"limit": "-1s"}, r"^limit of sweep is not a duration"),
        ({"jitter": 1}, r"^jitter of sweep must be at least 0 and less than 1"),
        ({"jitter": -0.1}, r"^jitter of sweep must be at least 0 and less than 1"),
        ({"jitter": float("nan")}, r"^jitter of sweep must be at least 0 and less than 1"),
        ({"jitter": "much"}, r"^jitter of sweep must be at least 0 and less than 1"),
        ({"per": "planet"}, r"^per of sweep must be one of process, fleet, got 'planet'$"),
        ({"name": " "}, r"^name of a periodic function must be printable text"),
        ({"name": "a\nb"}, r"^name of a periodic function must be printable text"),
        ({"name": "n" * 101}, r"^name of a periodic function must have at most 100 characters, got 101$"),
        (
            {"function": lambda room: room, "name": "sweep"},
            r"^function of sweep must take no parameters, but needs room",
        ),
        ({"function": 3, "name": "sweep"}, r"^function of sweep must be a function, got 3$"),
    ],
)
def test_a15_what_cannot_be_meant_is_refused_by_name(options: dict[str, Any], problem: str) -> None:
    with pytest.raises(SettingsError, match=problem):
        periodic(**{"function": sweep, "every": "2m", **options})


def test_a_function_that_yields_is_refused() -> None:
    def rooms() -> Any:
        yield 1

    async def more_rooms() -> Any:
        yield 1

    for function in (rooms, more_rooms):
        with pytest.raises(SettingsError, match="must not yield"):
            periodic(function, "2m")


async def test_an_async_function_runs_on_the_event_loop() -> None:
    calls: list[tuple[float, str]] = []

    async def note() -> None:
        calls.append((process.timer.monotonic(), threading.current_thread().name))

    process = Process(note)
    async with process.running():
        await process.timer.move(25)
    assert calls == [(at, threading.current_thread().name) for at in (0, 10, 20)]
    assert process.loop.ticks == 3


async def test_a_plain_function_runs_in_a_thread_and_sees_the_context() -> None:
    where = contextvars.ContextVar("where", default="")
    seen: list[tuple[bool, str]] = []
    process = Process(lambda: seen.append((threading.current_thread() is threading.main_thread(), where.get())))
    where.set("here")
    async with process.running():
        await until(lambda: process.loop.running_since is None)
    assert seen == [(False, "here")]


async def test_what_gives_a_coroutine_is_awaited() -> None:
    calls: list[str] = []

    async def note(how: str) -> None:
        calls.append(how)

    def give() -> Coroutine[Any, Any, None]:
        return note("given")

    for function in (functools.partial(note, "bound"), give):
        async with Process(function).running():
            await until(lambda: calls)
    assert calls == ["bound", "given"]


async def test_a17_a_function_in_a_thread_cannot_be_stopped_and_is_guarded() -> None:
    free = threading.Event()
    calls: list[float] = []

    def block() -> None:
        calls.append(process.timer.monotonic())
        free.wait(30)

    process = Process(block, limit="5s")
    async with process.running():
        await until(lambda: calls)
        await process.timer.move(35)
        assert process.told_of(LoopOverran) == [LoopOverran("sweep", 5.0, stopped=False)]
        assert [event.skipped for event in process.told_of(LoopSkipped)] == [1, 2, 3]
        assert calls == [0]
        free.set()
        await until(lambda: process.loop.running_since is None)
        await process.timer.move(5)
        await until(lambda: len(calls) == 2)
    assert calls == [0, 40]


async def test_a18_a_function_in_a_thread_is_waited_for_and_named() -> None:
    free = threading.Event()
    process = Process(functools.partial(free.wait, 30))
    loops = Loops([process.loop], process.timer)
    loops.start()
    drained = asyncio.create_task(loops.wait_for_completion("3s"))
    await process.timer.move(4)
    error = drained.exception()
    assert isinstance(error, StillRunning)
    assert error.names == ("sweep (for 3.0 s)",)
    free.set()


@pytest.mark.parametrize("error", [LookupError("no such room"), StoreUnavailable("gone")])
async def test_an_error_is_reported_by_name_and_the_next_call_comes_at_its_regular_time(
    error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    calls: list[float] = []

    async def fail() -> None:
        calls.append(process.timer.monotonic())
        raise error

    process = Process(fail)
    with caplog.at_level(logging.ERROR, "perdure.loop"):
        async with process.running():
            await process.timer.move(10)
    assert calls == [0, 10]
    assert process.told == 2 * [LoopFailed("sweep", f"{type(error).__name__}: {error}")]
    assert "in fail" in caplog.text


async def test_a_plain_function_that_calls_exit_does_not_end_the_process() -> None:
    def leave() -> None:
        raise SystemExit(3)

    process = Process(leave)
    async with process.running():
        await until(lambda: process.told)
    assert process.told == [LoopFailed("sweep", "RuntimeError: the tick called sys.exit(3)")]


class Fleet(Process):
    """One process of several, with a function that only the leader calls. The lead is renewed only when woken."""

    def __init__(
        self, store: Store, clock: ManualClock, holder: str, function: Callable[[], Any], **options: Any
    ) -> None:
        super().__init__(function, per="fleet", **options)
        self.loop = PeriodicLoop.of(self.declared, self.emitter, store, holder, clock)
        assert self.loop.leadership is not None
        self.leadership = self.loop.leadership
        self.loop.timer = self.timer
        self.leadership.timer = ManualTimer()


async def test_of_a_fleet_only_the_leader_calls_and_begins_when_it_takes_the_lead(
    store: Store, clock: ManualClock
) -> None:
    calls: list[str] = []

    def caller(name: str) -> Callable[[], Coroutine[Any, Any, None]]:
        async def call() -> None:
            calls.append(name)

        return call

    anna, bert = (Fleet(store, clock, name, caller(name)) for name in ("anna", "bert"))
    assert anna.leadership.subject == "loop:sweep"
    async with anna.running() as annas:
        await until(lambda: calls)
        async with bert.running():
            await until(lambda: bert.leadership.ticks)
            await until(lambda: bert.leadership.running_since is None)
            await bert.timer.move(10)
            await anna.timer.move(10)
            assert calls == ["anna", "anna"]
            assert (anna.loop.ticks, bert.loop.ticks) == (2, 0)
            await annas.wait_for_completion()
            assert anna.told_of(LeadLost)[0].because == "stepped down"
            bert.leadership.wake()
            await until(lambda: calls[2:])
    assert calls[2:] == ["bert"]
    assert bert.told_of(LeadTaken)[0].term == 2
    assert await store.leaders() == []


async def test_in_a_fleet_with_at_start_off_no_worker_calls_at_start(store: Store, clock: ManualClock) -> None:
    calls: list[float] = []

    async def call() -> None:
        calls.append(anna.timer.monotonic())

    anna = Fleet(store, clock, "anna", call, at_start=False)
    async with anna.running():
        await until(lambda: anna.leadership.is_leading)
        await anna.timer.move(9)
        assert calls == []
        await anna.timer.move(1)
        assert calls == [10]


async def test_a_tick_while_not_leading_counts_for_nothing(store: Store, clock: ManualClock) -> None:
    await store.lead("loop:sweep", "somebody else", timedelta(hours=1))
    anna = Fleet(store, clock, "anna", sweep)
    async with anna.running():
        await until(lambda: anna.leadership.ticks)
        await anna.timer.move(35)
    assert (anna.loop.ticks, anna.loop.skipped, anna.loop.failed) == (0, 0, 0)
    assert anna.told == []


async def test_a18_the_lead_is_held_until_the_last_call_is_over(store: Store, clock: ManualClock) -> None:
    work = Blocker()
    anna = Fleet(store, clock, "anna", work.__call__)
    loops = Loops([anna.loop], anna.timer)
    loops.start()
    await until(lambda: anna.loop.running_since is not None)
    drained = asyncio.create_task(loops.wait_for_completion())
    await anna.timer.move(5)
    assert not drained.done()
    assert [view.holder for view in await store.leaders()] == ["anna"]
    work.over.set()
    await drained
    assert await store.leaders() == []


async def test_a20_a_call_that_is_deaf_does_not_keep_the_lead_past_the_drain(store: Store, clock: ManualClock) -> None:
    work = Blocker(deaf=True)
    anna = Fleet(store, clock, "anna", work.__call__)
    loops = Loops([anna.loop], anna.timer)
    loops.start()
    await until(lambda: anna.loop.running_since is not None)
    drained = asyncio.create_task(loops.wait_for_completion("2s"))
    await anna.timer.move(3)
    await asyncio.wait([drained])
    assert isinstance(drained.exception(), StillRunning)
    assert await store.leaders() == []
    work.over.set()
    await settle()

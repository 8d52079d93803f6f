"""The one loop: when ticks come, when they do not, and what becomes of those that take too long."""

from __future__ import annotations

import asyncio
import importlib
import inspect
import logging
import pkgutil
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from datetime import timedelta
from typing import Any

import pytest
from tests.support.programs.blocker import Blocker
from tests.support.timer import ManualTimer, settle

import perdure
from perdure.errors import SettingsError, StoreUnavailable
from perdure.events import (
    Emitter,
    Event,
    LoopFailed,
    LoopOverran,
    LoopSkipped,
    StoreRecovered,
    StoreTrouble,
)
from perdure.lifecycle.loops.intervals import interval_from_env, read_interval
from perdure.lifecycle.loops.leadership import Leadership
from perdure.lifecycle.loops.loop import Loop
from perdure.policy.retries.jitter import Jitter
from perdure.worker.periodic import PeriodicLoop

SECOND = timedelta(seconds=1)


class Sweep(Loop[str]):
    """Every ten seconds, with a limit of a minute."""

    name = "sweep"
    interval = 10 * SECOND
    limit = 60 * SECOND
    jitter = Jitter.none()

    def __init__(self, timer: ManualTimer, work: Callable[[], Awaitable[str]] | None = None) -> None:
        self.told: list[Event] = []
        emitter = Emitter()
        emitter.subscribe(self.told.append)
        super().__init__(emitter)
        self.timer = timer
        self.at: list[float] = []  # when ticks began
        self.under_way = 0
        self.most_at_once = 0
        self._work = work

    async def tick(self) -> str:
        self.at.append(self.timer.monotonic())
        self.under_way += 1
        self.most_at_once = max(self.most_at_once, self.under_way)
        try:
            return await self._work() if self._work is not None else "nothing"
        finally:
            self.under_way -= 1

    def told_of(self, kind: type[Event]) -> list[Any]:
        return [event for event in self.told if isinstance(event, kind)]


@pytest.fixture
def timer() -> ManualTimer:
    return ManualTimer()


@asynccontextmanager
async def running(loop: Loop[Any]) -> AsyncIterator[asyncio.Task[None]]:
    task = asyncio.create_task(loop.run())
    await settle()
    try:
        yield task
    finally:
        loop.stop()
        await settle()
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def test_a15_the_first_tick_comes_at_once_and_the_others_every_interval(timer: ManualTimer) -> None:
    sweep = Sweep(timer)
    async with running(sweep):
        assert sweep.at == [0]
        await timer.move(35)
    assert sweep.at == [0, 10, 20, 30]
    assert (sweep.ticks, sweep.failed, sweep.skipped) == (4, 0, 0)


async def test_a17_a_loop_that_is_not_to_begin_at_start_waits_one_interval(timer: ManualTimer) -> None:
    sweep = Sweep(timer)
    sweep.at_start = False
    async with running(sweep):
        await timer.move(9)
        assert sweep.at == []
        await timer.move(11)
    assert sweep.at == [10, 20]


async def test_a17_a_tick_due_while_the_last_one_runs_is_skipped_reported_and_counted(timer: ManualTimer) -> None:
    work = Blocker()
    sweep = Sweep(timer, work)
    async with running(sweep):
        await timer.move(25)
        assert sweep.told == [LoopSkipped("sweep", 10.0, 1), LoopSkipped("sweep", 20.0, 2)]
        assert LoopSkipped.sentence == "still running, skipping tick"
        assert (sweep.at, sweep.running_since) == ([0], 0)
        work.over.set()
        await timer.move(4)
        assert (sweep.at, sweep.running_since) == ([0], None), "the next tick waits for its regular time"
        await timer.move(16)
    assert sweep.at == [0, 30, 40], "no burst follows a long tick"
    assert (sweep.skipped, sweep.most_at_once) == (2, 1)


async def test_a17_a_tick_that_blocks_everything_makes_no_burst_either(timer: ManualTimer) -> None:
    async def block() -> str:
        if len(sweep.at) == 1:
            timer.jump(35)
        return "blocked"

    sweep = Sweep(timer, block)
    async with running(sweep):
        assert sweep.told == [LoopSkipped("sweep", 35.0, 3)]
        await timer.move(15)
    assert sweep.at == [0, 40, 50]


async def test_a17_a_process_that_was_stopped_ticks_once_when_it_goes_on(timer: ManualTimer) -> None:
    sweep = Sweep(timer)
    async with running(sweep):
        timer.jump(3605)
        await timer.move(6)
    assert sweep.at == [0, 3605, 3610]
    assert (sweep.ticks, sweep.skipped, sweep.told) == (3, 0, [])


async def test_a15_a_tick_past_its_limit_is_stopped_and_the_loop_goes_on(timer: ManualTimer) -> None:
    work = Blocker()
    sweep = Sweep(timer, work)
    sweep.limit = 5 * SECOND
    async with running(sweep):
        await timer.move(4)
        assert work.cancellations == 0
        await timer.move(1)
        assert work.cancellations == 1
        assert sweep.told == [LoopOverran("sweep", 5.0, stopped=True)]
        await timer.move(5)
    assert sweep.at == [0, 10]
    assert (sweep.failed, sweep.skipped) == (1, 0)


async def test_a17_a_tick_that_ignores_its_limit_is_left_running_and_guarded(timer: ManualTimer) -> None:
    work = Blocker(deaf=True)
    sweep = Sweep(timer, work)
    sweep.limit = 5 * SECOND
    async with running(sweep):
        await timer.move(5.5)
        assert sweep.told == [], "it has a second to obey"
        await timer.move(1)
        assert sweep.told == [LoopOverran("sweep", 5.0, stopped=False)]
        await timer.move(24)
        assert [event.skipped for event in sweep.told_of(LoopSkipped)] == [1, 2, 3]
        assert sweep.at == [0]
        work.over.set()
        await timer.move(10)
    assert sweep.at == [0, 40]
    assert (sweep.most_at_once, sweep.failed, work.cancellations) == (1, 1, 1)
    assert len(sweep.told_of(LoopOverran)) == 1


async def test_an_error_is_reported_with_its_traceback_in_the_log_and_the_loop_goes_on(
    timer: ManualTimer, caplog: pytest.LogCaptureFixture
) -> None:
    async def fail() -> str:
        raise LookupError("no such room")

    sweep = Sweep(timer, fail)
    with caplog.at_level(logging.ERROR, "perdure.loop"):
        async with running(sweep):
            await timer.move(10)
    assert sweep.told == 2 * [LoopFailed("sweep", "LookupError: no such room")]
    assert (sweep.at, sweep.ticks, sweep.failed) == ([0, 10], 2, 2)
    assert "in fail" in caplog.text


@pytest.mark.parametrize("error", [asyncio.CancelledError(), SystemExit(3), KeyError("x")])
async def test_nothing_that_a_tick_raises_ends_the_loop(timer: ManualTimer, error: BaseException) -> None:
    async def fail() -> str:
        raise error

    sweep = Sweep(timer, fail)
    async with running(sweep) as task:
        await timer.move(10)
        assert not task.done()
    assert (sweep.at, sweep.failed) == ([0, 10], 2)


async def test_an_error_in_next_wait_does_not_end_the_loop(timer: ManualTimer, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(did: str) -> timedelta:
        raise KeyError(did)

    sweep = Sweep(timer)
    monkeypatch.setattr(sweep, "next_wait", fail)
    async with running(sweep):
        await timer.move(10)
    assert (sweep.at, sweep.failed) == ([0, 10], 2)


async def test_c4_database_trouble_is_met_with_patience_and_a_success_resets_it(timer: ManualTimer) -> None:
    away = True

    async def ask() -> str:
        if away:
            raise StoreUnavailable("gone")
        return "here"

    sweep = Sweep(timer, ask)
    async with running(sweep):
        await timer.move(100)
        waits = [event.wait for event in sweep.told_of(StoreTrouble)]
        assert waits[:11] == [0.2, 0.2, 0.2, 0.2, 1, 2, 4, 8, 16, 30, 30]
        sweep.wake()
        await settle()
        assert len(sweep.at) == len(waits), "a wake-up does not cut the wait short"
        away = False
        await timer.move(30)
        assert sweep.told_of(StoreRecovered) == [StoreRecovered("sweep", len(waits))]
        away = True
        await timer.move(10)
    assert sweep.told_of(StoreTrouble)[len(waits)].wait == 0.2


async def test_a_wake_up_brings_the_next_tick_forward(timer: ManualTimer) -> None:
    sweep = Sweep(timer)
    async with running(sweep):
        await timer.move(3)
        sweep.wake()
        await timer.move(10)
    assert sweep.at == [0, 3, 13]


async def test_a_wake_up_during_a_tick_makes_another_one_follow_it(timer: ManualTimer) -> None:
    work = Blocker()
    sweep = Sweep(timer, work)
    async with running(sweep):
        sweep.wake()
        await timer.move(4)
        work.over.set()
        await timer.move(5)
    assert sweep.at == [0, 4]
    assert (sweep.skipped, sweep.most_at_once) == (0, 1)


async def test_a_loop_that_knows_better_ticks_sooner(timer: ManualTimer, monkeypatch: pytest.MonkeyPatch) -> None:
    sweep = Sweep(timer)
    monkeypatch.setattr(sweep, "next_wait", lambda _: 2 * SECOND if len(sweep.at) < 3 else sweep.interval)
    async with running(sweep):
        await timer.move(15)
    assert sweep.at == [0, 2, 4, 14]


async def test_ticks_are_spread_by_a_tenth_of_the_interval(timer: ManualTimer) -> None:
    sweep = Sweep(timer)
    sweep.jitter = Loop.jitter
    async with running(sweep):
        await timer.move(1000)
    gaps = [after - before for before, after in zip(sweep.at, sweep.at[1:], strict=False)]
    assert 90 <= len(gaps) <= 110
    assert all(9 <= gap <= 11 for gap in gaps)
    assert max(gaps) - min(gaps) > 1


async def test_a18_a_stopped_loop_ends_after_the_tick_under_way(timer: ManualTimer) -> None:
    work = Blocker()
    sweep = Sweep(timer, work)
    async with running(sweep) as task:
        sweep.stop()
        await timer.move(30)
        assert not task.done()
        work.over.set()
        await settle()
        assert task.done()
    assert (sweep.at, work.cancellations, sweep.told) == ([0], 0, [])


async def test_a18_a_loop_that_waits_ends_at_once_when_stopped(timer: ManualTimer) -> None:
    sweep = Sweep(timer)
    async with running(sweep) as task:
        sweep.stop()
        await settle()
        assert task.done()


async def test_a_cancelled_loop_stops_its_tick(timer: ManualTimer) -> None:
    work = Blocker()
    sweep = Sweep(timer, work)
    async with running(sweep) as task:
        task.cancel()
        await settle()
        assert task.cancelled()
    assert work.cancellations == 1
    assert sweep.running_since is None


async def test_a20_a_cancelled_loop_leaves_a_deaf_tick_behind(timer: ManualTimer) -> None:
    work = Blocker(deaf=True)
    sweep = Sweep(timer, work)
    async with running(sweep) as task:
        task.cancel()
        await settle()
        assert not task.done(), "the tick has a second to obey"
        await timer.move(1)
        assert task.cancelled()
        assert sweep.under_way == 1
        assert not [left for left in asyncio.all_tasks() if left.get_name() == "perdure sweep"]
        work.over.set()
        await settle()
    assert sweep.under_way == 0


@pytest.mark.parametrize("value", ["500ms", 0, "0s", timedelta(milliseconds=999)])
def test_a15_an_interval_below_a_second_is_refused_by_name(value: Any) -> None:
    with pytest.raises(SettingsError, match=r"^every of sweep must be at least 1s, got ") as refused:
        read_interval("every of sweep", value)
    assert refused.value.field == "every of sweep"


def test_a15_the_refusal_says_what_was_given() -> None:
    with pytest.raises(SettingsError, match=r"^every of sweep must be at least 1s, got 500ms$"):
        read_interval("every of sweep", 0.5)


def test_a8_an_interval_comes_from_an_environment_variable() -> None:
    variable = "CERTCTL_NOTIFICATION_RETRY_INTERVAL"
    assert interval_from_env(variable, "2m", environment={}) == timedelta(minutes=2)
    assert interval_from_env(variable, "2m", environment={variable: ""}) == timedelta(minutes=2)
    assert interval_from_env(variable, "2m", environment={variable: "90s"}) == timedelta(seconds=90)
    assert interval_from_env(variable, "2m", environment={variable: "30"}) == timedelta(seconds=30)


def test_a15_an_environment_variable_is_read_when_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CERTCTL_SCHEDULER_RETRY_INTERVAL", "7m")
    assert interval_from_env("CERTCTL_SCHEDULER_RETRY_INTERVAL", "5m") == timedelta(minutes=7)


@pytest.mark.parametrize(
    ("value", "problem"), [("900ms", "must be at least 1s, got 900ms"), ("soon", "is not a duration: 'soon'")]
)
def test_a15_a_bad_environment_variable_is_named(value: str, problem: str) -> None:
    variable = "CERTCTL_SCHEDULER_RETRY_INTERVAL"
    with pytest.raises(SettingsError, match=f"^{variable} {problem}"):
        interval_from_env(variable, "5m", environment={variable: value})


def test_a15_what_is_too_short_may_be_said() -> None:
    with pytest.raises(SettingsError, match=r"^SCAN_INTERVAL must be at least 1h, got 30m$"):
        interval_from_env("SCAN_INTERVAL", "6h", at_least="1h", environment={"SCAN_INTERVAL": "30m"})
    assert interval_from_env("TICK", "1s", at_least="10ms", environment={"TICK": " 20ms "}) == timedelta(
        milliseconds=20
    )


def test_a15_a_default_that_is_too_short_is_not_blamed_on_the_variable() -> None:
    with pytest.raises(SettingsError, match=r"^default of TICK must be at least 1s, got 20ms$"):
        interval_from_env("TICK", "20ms", environment={})


def test_a15_a_periodic_function_takes_an_interval_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CERTCTL_NOTIFICATION_RETRY_INTERVAL", "5m")
    app = perdure.App("sqlite:///unused.db")

    @app.every(perdure.interval_from_env("CERTCTL_NOTIFICATION_RETRY_INTERVAL", "2m"), limit="2m")
    async def retry_notifications() -> None: ...

    declared = app.periodic["retry_notifications"]
    assert (declared.every, declared.limit) == (timedelta(minutes=5), timedelta(minutes=2))


def every_loop() -> list[type[Loop[Any]]]:
    """Every loop of the package."""
    for module in pkgutil.walk_packages(perdure.__path__, "perdure."):
        if module.name.startswith(("perdure.lifecycle.", "perdure.upkeep.", "perdure.worker.")):
            importlib.import_module(module.name)
    every = _below(Loop)  # type: ignore[type-abstract] # nobody makes one of it
    found = [loop for loop in every if loop.__module__.startswith("perdure.") and not inspect.isabstract(loop)]
    return sorted(found, key=lambda loop: loop.__name__)


def _below(kind: type[Loop[Any]]) -> Iterator[type[Loop[Any]]]:
    for below in kind.__subclasses__():
        yield below
        yield from _below(below)


NAMED_WHEN_MADE: dict[type[Loop[Any]], str] = {Leadership: "leadership", PeriodicLoop: "periodic"}
GUARD = ("_look", "_begin", "_once", "_watch", "_conclude", "_pass", "stop", "wake")


def test_a20_the_loops_of_the_package_are_found() -> None:
    names = {loop.__name__ for loop in every_loop()}
    assert {"Promoter", "Pruner", "Rescuer", "OperatorRequests", "Recycler", "Leadership", "PeriodicLoop"} <= names
    assert "perdure.upkeep.promoter" in sys.modules


@pytest.mark.parametrize("kind", every_loop(), ids=lambda kind: kind.__name__)
async def test_a20_every_loop_is_guarded(kind: type[Loop[Any]], timer: ManualTimer) -> None:
    """Each has a name, an interval and a limit, and none of its ticks overlaps another or outlasts its limit."""
    work = Blocker()

    class Slow(kind):  # type: ignore[misc, valid-type] # any of the loops, with a tick that takes long
        async def tick(self) -> str:
            return await work()

        def next_wait(self, did: str) -> timedelta:
            return Loop.next_wait(self, did)

        def is_wanted(self) -> bool:
            return True

    if kind in NAMED_WHEN_MADE:
        Slow.name, Slow.interval = NAMED_WHEN_MADE[kind], 10 * SECOND
    else:
        assert kind.run is Loop.run
    assert all(getattr(kind, part) is getattr(Loop, part) for part in GUARD)
    assert isinstance(Slow.name, str)
    assert Slow.limit > timedelta(0)
    told: list[Event] = []
    emitter = Emitter()
    emitter.subscribe(told.append)
    loop = Slow.__new__(Slow)
    Loop.__init__(loop, emitter)
    loop.timer = timer
    loop.jitter = Jitter.none()
    loop.limit = 3 * loop.interval
    seconds = loop.interval.total_seconds()
    task = asyncio.create_task(Loop.run(loop))
    await timer.move(2.5 * seconds)
    assert told == [LoopSkipped(loop.name, seconds, 1), LoopSkipped(loop.name, 2 * seconds, 2)]
    assert (loop.ticks, loop.skipped) == (1, 2)
    await timer.move(0.5 * seconds)
    assert told[-1] == LoopOverran(loop.name, 3 * seconds, stopped=True)
    loop.stop()
    await settle()
    assert task.done()

"""A crew of loops: launched together, drained together, and what still runs is named."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

import pytest
from tests.support.programs.blocker import Blocker
from tests.support.timer import ManualTimer, settle
from tests.support.waiting import until

from perdure.errors import StillRunning
from perdure.events import Emitter
from perdure.lifecycle.loops import tick
from perdure.lifecycle.loops.crew import Loops
from perdure.lifecycle.loops.loop import Loop
from perdure.lifecycle.timer import REAL_TIMER, Timer
from perdure.worker.periodic import PeriodicLoop, periodic


class Work(Loop[None]):
    """Every ten minutes, for as long as it likes."""

    interval = limit = timedelta(minutes=10)

    def __init__(self, name: str, work: Callable[[], Awaitable[Any]], timer: Timer = REAL_TIMER) -> None:
        super().__init__(Emitter())
        self.name = name
        self.timer = timer
        self._work = work

    async def tick(self) -> None:
        await self._work()


async def nothing() -> None:
    """Work that is soon done."""


@pytest.fixture
def timer() -> ManualTimer:
    return ManualTimer()


async def test_a19_started_is_signalled_when_the_loops_are_launched(timer: ManualTimer) -> None:
    work = Blocker()
    loops = Loops([Work("first", work, timer), Work("second", nothing, timer)], timer)
    assert not loops.started.is_set()
    loops.start()
    assert loops.started.is_set(), "at once, and whatever the first tick does"
    await settle()
    assert [loop.ticks for loop in loops] == [1, 1]
    work.over.set()
    await loops.wait_for_completion()


async def test_a_loop_that_joins_later_is_launched_at_once(timer: ManualTimer) -> None:
    loops = Loops(timer=timer)
    loops.start()
    late = Work("late", nothing, timer)
    loops.add(late)
    await settle()
    assert late.ticks == 1
    await loops.wait_for_completion()


async def test_a18_the_drain_waits_for_the_tick_under_way(timer: ManualTimer) -> None:
    work = Blocker()
    loops = Loops([Work("sweep", work, timer), Work("idle", nothing, timer)], timer)
    loops.start()
    await settle()
    drained = asyncio.create_task(loops.wait_for_completion())
    await timer.move(29)
    assert not drained.done()
    work.over.set()
    await settle()
    assert drained.done()
    assert drained.exception() is None
    assert work.cancellations == 0


async def test_a18_past_the_limit_the_error_names_what_still_runs_and_for_how_long(timer: ManualTimer) -> None:
    work = Blocker()
    loops = Loops([Work("idle", nothing, timer), Work("sweep", work, timer)], timer)
    loops.start()
    await timer.move(1.2)
    drained = asyncio.create_task(loops.wait_for_completion())
    await timer.move(30)
    error = drained.exception()
    assert isinstance(error, StillRunning)
    assert error.names == ("sweep (for 31.2 s)",)
    assert error.within == 30
    assert str(error) == "still running after 30 s: sweep (for 31.2 s)"
    assert work.cancellations == 1, "what still runs is told to stop"


async def test_a20_a_blocker_that_ignores_cancellation_is_named_and_left_behind(timer: ManualTimer) -> None:
    work = Blocker(deaf=True)
    loops = Loops([Work("sweep", work, timer)], timer)
    loops.start()
    drained = asyncio.create_task(loops.wait_for_completion("5s"))
    await timer.move(5)
    assert not drained.done(), "it has a second to obey"
    await timer.move(1)
    error = drained.exception()
    assert isinstance(error, StillRunning)
    assert error.names == ("sweep (for 5.0 s)",)
    assert work.cancellations == 1
    work.over.set()
    await settle()


async def test_a18_the_drain_waits_for_other_work_in_flight_and_names_it(timer: ManualTimer) -> None:
    jobs = {"job 1", "job 2"}
    loops = Loops([Work("sweep", nothing, timer)], timer)
    loops.start()
    drained = asyncio.create_task(loops.wait_for_completion("10s", also=lambda: sorted(jobs)))
    await timer.move(5)
    assert not drained.done()
    jobs.discard("job 1")
    await timer.move(5)
    error = drained.exception()
    assert isinstance(error, StillRunning)
    assert error.names == ("job 2",)
    jobs.clear()
    await loops.wait_for_completion("10s", also=lambda: sorted(jobs))


async def test_a18_without_any_time_left_only_what_runs_is_named(timer: ManualTimer) -> None:
    loops = Loops([Work("idle", nothing, timer), Work("sweep", Blocker(), timer)], timer)
    loops.start()
    await settle()
    drained = asyncio.create_task(loops.wait_for_completion(0))
    await timer.move(1)
    error = drained.exception()
    assert isinstance(error, StillRunning)
    assert error.names == ("sweep (for 0.0 s)",)


async def test_a20_no_tick_begins_once_the_crew_is_stopped(timer: ManualTimer) -> None:
    sweep = Work("sweep", nothing, timer)
    loops = Loops([sweep], timer)
    loops.start()
    await settle()
    loops.stop()
    sweep.wake()
    await timer.move(3600)
    assert sweep.ticks == 1
    await loops.wait_for_completion()


def test_a20_a_shutdown_ends_although_a_task_and_a_thread_do_not(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From launch to the end of the event loop, in real time: nothing hangs, and nothing is lamented."""
    monkeypatch.setattr(tick, "GRACE_SECONDS", 0.01)
    free = threading.Event()
    stuck = PeriodicLoop(periodic(free.wait, "1h", name="thread"), Emitter())

    async def process() -> None:
        deaf = Blocker(deaf=True)
        quick = Work("quick", nothing)
        loops = Loops([Work("deaf", deaf), stuck, quick])
        loops.start()
        await until(lambda: quick.ticks and stuck.running_since is not None)
        await loops.wait_for_completion("20ms")

    with caplog.at_level(logging.WARNING), pytest.raises(StillRunning) as raised:
        asyncio.run(process())
    assert [name.partition(" ")[0] for name in raised.value.names] == ["deaf", "thread"]
    assert "destroyed" not in caplog.text
    free.set()


def test_the_time_that_was_given_is_reported_in_a_few_digits() -> None:
    error = StillRunning(("sweep (for 9.2 s)",), 5.978690001)
    assert str(error) == "still running after 6 s: sweep (for 9.2 s)"
    assert error.within == 5.978690001

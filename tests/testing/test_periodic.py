"""`@app.every` in a sandbox: called at its times as the clock moves, guarded, limited, and through errors (A17)."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta

import pytest
from tests.support.programs.blocker import Blocker

from perdure import App
from perdure.clock import SystemClock
from perdure.events import Event, LoopFailed, LoopOverran, LoopSkipped
from perdure.testing import Sandbox

UNUSED = "sqlite:///unused.db"
MINUTE = timedelta(minutes=1)


class Office:
    """An app, what it tells, and when its functions were called."""

    def __init__(self) -> None:
        self.app = App(UNUSED)
        self.events: list[Event] = []
        self.app.subscribe(self.events.append)
        self.box = Sandbox(self.app)
        self.begun = self.box.now
        self.at: list[timedelta] = []

    async def tick(self) -> None:
        self.note()

    def note(self) -> None:
        self.at.append(self.box.now - self.begun)


@pytest.fixture
def office() -> Office:
    return Office()


async def test_it_is_called_at_its_times_on_a_journey(office: Office) -> None:
    office.app.every("2m", name="async")(office.tick)

    @office.app.every("3m", at_start=False)
    def plain() -> None:
        office.note()

    async with office.box as box:
        await box.drain()
        assert office.at == [0 * MINUTE]
        await box.drain()
        assert office.at == [0 * MINUTE], "nothing is due"
        await box.drain(travel="6m")
        assert office.at == [minutes * MINUTE for minutes in (0, 2, 3, 4, 6, 6)]
        assert box.now - office.begun == 6 * MINUTE


async def test_what_was_due_several_times_while_the_clock_jumped_is_called_once(office: Office) -> None:
    office.app.every("1m")(office.tick)
    async with office.box as box:
        await box.drain()
        box.travel("1h30s")
        await box.drain()
        await box.drain(travel="30s")
        assert office.at == [0 * MINUTE, 60.5 * MINUTE, 61 * MINUTE]
    assert office.events == []


async def test_jobs_that_it_enqueues_are_run(office: Office) -> None:
    done: list[int] = []

    @office.app.job
    async def work(number: int) -> None:
        done.append(number)

    @office.app.every("1m", per="fleet")
    async def enqueue() -> None:
        await work.enqueue(len(done))

    async with office.box as box:
        await box.drain(travel="3m")
    assert done == [0, 1, 2, 3]


async def test_a17_a_call_that_is_due_while_the_last_one_runs_is_skipped_and_logged(office: Office) -> None:
    @office.app.every("1m", limit="10m")
    async def slow() -> None:
        office.note()
        office.box.travel("2m30s")

    async with office.box as box:
        await box.drain(travel="4m")
        assert office.at == [0 * MINUTE, 3 * MINUTE]
    assert office.events == [LoopSkipped("slow", 150.0, 2), LoopSkipped("slow", 150.0, 4)]


async def test_a_call_that_exceeds_its_limit_is_told_to_stop(office: Office) -> None:
    blocker = Blocker()

    @office.app.every("1m", limit="10ms")
    async def hang() -> None:
        await blocker()

    async with office.box as box:
        await box.drain(travel="1m")
    assert (blocker.cancellations, office.events) == (2, [LoopOverran("hang", 0.01, stopped=True)] * 2)


async def test_a_call_that_does_not_stop_keeps_the_next_from_beginning(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("perdure.testing.periodic.GRACE_SECONDS", 0.01)
    blocker = Blocker(deaf=True)

    @office.app.every("1m", limit="10ms")
    async def deaf() -> None:
        office.note()
        await blocker()

    async with office.box as box:
        await box.drain(travel="2m")
        assert office.at == [0 * MINUTE]
        skipped = [LoopSkipped("deaf", 60.0, 1), LoopSkipped("deaf", 120.0, 2)]
        assert office.events == [LoopOverran("deaf", 0.01, stopped=False), *skipped]
        blocker.over.set()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        await box.drain(travel="1m")
        assert office.at == [0 * MINUTE, 3 * MINUTE]


async def test_an_error_ends_nothing_and_may_be_raised(office: Office) -> None:
    @office.app.every("1m")
    async def fail() -> None:
        office.note()
        raise ValueError("odd")

    async with office.box as box:
        await box.drain(travel="1m")
        assert office.at == [0 * MINUTE, 1 * MINUTE]
        with pytest.raises(ValueError, match="odd"):
            await box.drain(travel="1m", raising=True)
    assert office.events == [LoopFailed("fail", "ValueError: odd")] * 3


def test_a_sync_test_drains_them_too(office: Office) -> None:
    @office.app.every("1m")
    def plain() -> None:
        office.note()

    with office.box as box:
        box.drain_sync(travel="2m")
    assert office.at == [0 * MINUTE, 1 * MINUTE, 2 * MINUTE]


async def test_they_can_be_left_out() -> None:
    called: list[datetime] = []
    app = App(UNUSED)
    app.every("1m", name="never")(lambda: called.append(SystemClock().now()))
    async with Sandbox(app, periodic=False) as box:
        await box.drain(travel="1h")
    assert called == []


async def test_a_long_journey_with_short_intervals_needs_no_higher_limit(office: Office) -> None:
    office.app.every("1m")(office.tick)
    async with office.box as box:
        await box.drain(travel="1d")
    assert office.at == [minutes * MINUTE for minutes in range(24 * 60 + 1)]

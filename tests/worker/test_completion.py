"""A18, A19: an embedding program waits for a worker's work in flight, and learns what still runs."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from structlog.testing import capture_logs
from tests.support.programs.blocker import Blocker
from tests.support.timer import ManualTimer
from tests.support.waiting import until
from tests.support.working import Shift, at_work

from perdure import App, ConflictError, RunningJob, StillRunning, WorkerSettings
from perdure.errors import ArgumentError, StoreUnavailable
from perdure.events import CompletionAwaited, WorkerClosed
from perdure.events.log import EventLog
from perdure.storage.port import Store
from perdure.worker.completion import Completion

UNUSED = "sqlite:///unused.db"
SENTENCE = "waiting for scheduler to complete in-flight work"


class Busy:
    """An app with a job and a loop, both under way until they are let go."""

    def __init__(self, *, deaf: bool = False) -> None:
        self.app = App(UNUSED)
        self.handler, self.ticker = Blocker(deaf=deaf), Blocker(deaf=deaf)
        self.send = self.app.job(name="send")(self._send)
        self.app.every("1h", name="sweep")(self._tick)
        self.at_once = 0

    async def _send(self) -> None:
        self.at_once += 1
        await self.handler()

    async def _tick(self) -> None:
        self.at_once += 1
        await self.ticker()

    async def begin(self, store: Store) -> str:
        [receipt] = await store.insert([self.send.call().job])
        await until(lambda: self.at_once == 2)
        return receipt.job_id

    def let_go(self) -> None:
        self.handler.over.set()
        self.ticker.over.set()


def names(loops: tuple[str, ...]) -> set[str]:
    """The loops without how long their ticks have run; short ticks of the worker's own loops may be among them."""
    return {loop.partition(" ")[0] for loop in loops}


async def test_a18_it_waits_for_the_loops_and_the_work_in_flight_and_says_so(real_time_store: Store) -> None:
    busy = Busy()
    async with at_work(real_time_store, busy.app, stop_timeout="20s") as shift:
        shift.worker._parts.around.emitter.subscribe(EventLog())
        await busy.begin(real_time_store)
        with capture_logs() as lines:
            waiting = asyncio.create_task(shift.worker.wait_for_completion())
            await until(lambda: shift.told(CompletionAwaited))
        assert SENTENCE in [line["event"] for line in lines]
        busy.handler.over.set()
        await until(lambda: shift.worker.running == 0)
        assert not waiting.done(), "the loop's tick is still under way"
        busy.ticker.over.set()
        await asyncio.wait_for(waiting, 10)
        assert shift.told(WorkerClosed)
        [event] = shift.told(CompletionAwaited)
        assert (event.running, event.within) == (1, 30.0)
        assert "sweep" in names(event.loops)


async def test_a18_past_the_limit_the_error_says_what_was_still_running(real_time_store: Store) -> None:
    busy = Busy()
    async with at_work(real_time_store, busy.app, stop_timeout="20s", grace="10s") as shift:
        job_id = await busy.begin(real_time_store)
        with pytest.raises(StillRunning) as raised:
            await shift.worker.wait_for_completion("100ms")
        error = raised.value
        [job] = error.jobs
        claimed_at = next(iter(shift.worker._parts.attempts.executor.running)).claim.claimed_at
        assert job == RunningJob("send", job_id, claimed_at)
        assert "sweep" in names(error.loops)
        assert f"still running after 0.1 s: job send {job_id} (since " in str(error)
        await until(lambda: busy.handler.cancellations)  # asked to stop at once, long before the stop timeout
        busy.let_go()
        await shift.worker.wait_for_completion()


async def test_a20_a_blocker_that_ignores_cancellation_does_not_hang_it(
    real_time_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is given up at the stop timeout, its job goes back, and it counts as running for as long as it runs."""
    timer = ManualTimer()
    busy = Busy(deaf=True)
    async with at_work(real_time_store, busy.app, stop_timeout="50ms", grace="10ms") as shift:
        job_id = await busy.begin(real_time_store)
        monkeypatch.setattr(Completion, "timer", timer)
        waiting = asyncio.create_task(shift.worker.wait_for_completion())
        await until(lambda: shift.told(WorkerClosed))
        timer.jump(29.0)
        await timer.move(0.5)
        assert not waiting.done()
        await timer.move(0.5)
        error = waiting.exception()
        assert isinstance(error, StillRunning)
        assert [(job.kind, job.job_id) for job in error.jobs] == [("send", job_id)]
        assert "sweep" in names(error.loops)
        busy.let_go()
        await until(lambda: not shift.worker.running)
        await shift.worker.wait_for_completion("10ms")


async def test_a18_a_worker_that_does_nothing_is_over_at_once(real_time_store: Store) -> None:
    async with at_work(real_time_store, App(UNUSED)) as shift:
        await asyncio.wait_for(shift.worker.wait_for_completion(), 10)


async def test_a18_a_worker_that_was_never_run_needs_no_wait(engine_url: str) -> None:
    async with App(engine_url) as app:
        await (await app.worker()).wait_for_completion("10ms")


async def test_a18_a_run_that_is_only_about_to_begin_is_waited_for(real_time_store: Store) -> None:
    shift = Shift(real_time_store, App(UNUSED), WorkerSettings())
    await shift.worker.wait_for_completion()
    assert shift.told(WorkerClosed)


@pytest.mark.parametrize("limit", ["soon", -1, None])
async def test_a18_a_timeout_that_is_no_duration_is_refused_and_stops_nothing(
    real_time_store: Store, limit: Any
) -> None:
    async with at_work(real_time_store, App(UNUSED)) as shift:
        with pytest.raises(ArgumentError, match="timeout"):
            await shift.worker.wait_for_completion(limit)
        assert not shift.worker._parts.state.stop.is_set()


async def test_a19_started_is_signalled_when_the_loops_are_launched(real_time_store: Store) -> None:
    """At once, while the first tick of a loop still runs."""
    busy = Busy()
    shift = Shift(real_time_store, busy.app, WorkerSettings())
    await asyncio.wait_for(shift.worker.started(), 10)
    assert shift.worker._parts.loops.started.is_set()
    await asyncio.wait_for(shift.worker.started(), 10)  # also afterwards
    busy.let_go()
    await shift.worker.wait_for_completion()


async def test_a19_a_worker_that_cannot_start_says_so_to_those_who_wait(
    real_time_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refuse(_: object) -> None:
        raise StoreUnavailable("gone")

    shift = Shift(real_time_store, App(UNUSED), WorkerSettings())
    monkeypatch.setattr(shift.worker._parts.membership, "enter", lambda: refuse(None))
    with pytest.raises(ConflictError, match="ended before it started"):
        await asyncio.wait_for(shift.worker.started(), 10)
    with pytest.raises(StoreUnavailable):
        await shift._running

"""A worker that closes: who is told what and when, and that no job pays for it."""

from __future__ import annotations

import asyncio
import threading
import time
from pathlib import Path

import msgspec
import pytest
from tests.support.builders.jobs import a_job, enqueue, show
from tests.support.programs.blocker import Blocker
from tests.support.programs.isolated_jobs import app as isolated_app
from tests.support.waiting import text_of, until
from tests.support.working import at_work, seen

from perdure import App, Context, JobState, JobView, Release
from perdure.events import HandlerStuck, StaleWrites, TicksLeft, WorkerClosed, WorkerClosing
from perdure.storage.port import Store

UNUSED = "sqlite:///unused.db"


def costs(view: JobView) -> tuple[JobState, str, int, int]:
    return view.state, view.reason, view.failures, view.crashes


GIVEN_BACK = (JobState.READY, "released", 0, 0)


async def test_c1_handlers_are_reported_and_may_finish(real_time_store: Store) -> None:
    app = App(UNUSED)
    begun = asyncio.Event()

    @app.job
    async def greet(ctx: Context, name: str) -> str:
        begun.set()
        told = await ctx.wait_closing()
        return name if told and ctx.closing else "not told"

    async with at_work(real_time_store, app, stop_timeout="30s", grace="1s") as shift:
        job_id = await enqueue(real_time_store)
        await asyncio.wait_for(begun.wait(), 30)
        assert await shift.stopped() < 10
        assert [(event.running, event.within) for event in shift.told(WorkerClosing)] == [(1, 30)]
        assert [(event.finished, event.released) for event in shift.told(WorkerClosed)] == [(1, 0)]
    view = await show(real_time_store, job_id)
    assert (view.state, view.result) == (JobState.SUCCEEDED, '"Ada"')


async def test_c1_sync_handlers_are_reported_too(real_time_store: Store) -> None:
    app = App(UNUSED)
    begun, waits = threading.Event(), []

    @app.job
    def greet(ctx: Context, name: str) -> str:
        waits.append(bool(ctx.wait_closing("1ms")))
        begun.set()
        waits.append(bool(ctx.wait_closing()))
        raise Release

    async with at_work(real_time_store, app, stop_timeout="30s", grace="1s") as shift:
        job_id = await enqueue(real_time_store)
        await until(begun.is_set)
        assert await shift.stopped() < 10
    assert waits == [False, True]
    assert costs(await show(real_time_store, job_id)) == GIVEN_BACK


async def test_c1_a_worker_closes_although_handlers_block_all_threads_of_asyncio(
    real_time_store: Store, no_free_thread: None
) -> None:
    """What a handler has handed to `asyncio.to_thread` goes on after the handler was told to stop."""
    async with at_work(real_time_store, App(UNUSED)) as shift:
        assert await shift.stopped() < 10


async def test_c1_a_sync_handler_that_waits_wakes_when_its_attempt_must_end(real_time_store: Store) -> None:
    """An interrupt alone does not reach a thread that waits."""
    app = App(UNUSED)
    begun, waits = threading.Event(), []

    @app.job(timeout="100ms")
    def greet(ctx: Context, name: str) -> str:
        begun.set()
        waits.append(bool(ctx.wait_closing("60s")))
        return name

    async with at_work(real_time_store, app, grace="20s") as shift:
        job_id = await enqueue(real_time_store)
        await until(begun.is_set)
        view = await seen(real_time_store, job_id, JobState.RETRYING, JobState.DEAD)
        assert shift.told(HandlerStuck) == []
    assert "time limit" in str(view.last_error)


async def test_c1_what_runs_on_is_told_to_stop_in_time(real_time_store: Store) -> None:
    """A grace before the stop timeout is over, and not before."""
    app = App(UNUSED)
    times: list[float] = []

    @app.job
    async def greet(name: str) -> None:
        times.append(0)
        try:
            await asyncio.sleep(60)
        finally:
            times.append(asyncio.get_running_loop().time())

    async with at_work(real_time_store, app, stop_timeout="9s", grace="8600ms") as shift:
        job_id = await enqueue(real_time_store)
        await until(lambda: times)
        begun = asyncio.get_running_loop().time()
        assert await shift.stopped() < 10
        assert [(event.finished, event.released) for event in shift.told(WorkerClosed)] == [(0, 1)]
        assert shift.worker.finished == 0
    assert 0.39 <= times[1] - begun < 9
    assert costs(await show(real_time_store, job_id)) == GIVEN_BACK


@pytest.mark.parametrize(("stop_timeout", "grace", "bounds"), [(0.6, 0.3, (0.6, 5)), (0.2, 60, (0.2, 5))])
async def test_c1_a_handler_that_ignores_cancellation_is_given_up_at_the_stop_timeout(
    real_time_store: Store, stop_timeout: float, grace: float, bounds: tuple[float, float]
) -> None:
    app = App(UNUSED)
    begun, free = asyncio.Event(), asyncio.Event()

    @app.job
    async def greet(name: str) -> None:
        begun.set()
        while not free.is_set():
            try:
                await free.wait()
            except asyncio.CancelledError:
                continue

    async with at_work(real_time_store, app, stop_timeout=stop_timeout, grace=grace) as shift:
        job_id = await enqueue(real_time_store)
        await asyncio.wait_for(begun.wait(), 30)
        took = await shift.stopped()
        assert bounds[0] <= took < bounds[1]
        [stuck] = shift.told(HandlerStuck)
        assert (stuck.job_id, stuck.because) == (job_id, "worker is closing")
        assert costs(await show(real_time_store, job_id)) == GIVEN_BACK
        free.set()


async def test_c1_an_attempt_that_was_being_stopped_holds_the_close_no_longer_than_others(
    real_time_store: Store,
) -> None:
    """Its own grace may be longer than what is left of the stop timeout."""
    app = App(UNUSED)
    free = asyncio.Event()

    @app.job(timeout="50ms")
    async def greet(name: str) -> None:
        while not free.is_set():
            try:
                await free.wait()
            except asyncio.CancelledError:
                continue

    async with at_work(real_time_store, app, stop_timeout="300ms", grace="60s") as shift:
        await enqueue(real_time_store)
        await until(lambda: [running for running in shift.worker._parts.attempts.executor.running if running.stop])
        assert await shift.stopped() < 10
        assert len(shift.told(HandlerStuck)) == 1
        free.set()


async def test_c1_a_worker_that_must_hurry_waits_for_no_handler(real_time_store: Store) -> None:
    app = App(UNUSED)
    begun = asyncio.Event()

    @app.job
    async def greet(name: str) -> None:
        begun.set()
        await asyncio.sleep(60)

    async with at_work(real_time_store, app, stop_timeout="60s", grace="5s") as shift:
        job_id = await enqueue(real_time_store)
        await asyncio.wait_for(begun.wait(), 30)
        shift.worker.stop()
        await until(lambda: shift.told(WorkerClosing))
        shift.worker.hurry()
        assert await shift.stopped() < 10
    assert costs(await show(real_time_store, job_id)) == GIVEN_BACK


async def test_g9_a_job_that_waits_for_a_thread_goes_back_at_once(real_time_store: Store) -> None:
    app = App(UNUSED)
    ran: list[str] = []
    free = threading.Event()

    @app.job
    def greet(name: str) -> str:
        ran.append(name)
        free.wait(30)
        return name

    async with at_work(real_time_store, app, threads=1, stop_timeout="30s") as shift:
        first = await enqueue(real_time_store)
        await until(lambda: ran)
        second = await enqueue(real_time_store)
        await seen(real_time_store, second, JobState.RUNNING)
        shift.worker.stop()
        view = await seen(real_time_store, second, JobState.READY)
        assert costs(view) == GIVEN_BACK
        assert shift.worker.running == 1, "the other one goes on"
        free.set()
        await until(lambda: not shift.worker._parts.attempts.executor.thread_backlog)
    assert (await show(real_time_store, first)).state is JobState.SUCCEEDED
    assert ran == ["Ada"], "the thread has left alone what went back"
    assert (shift.worker._parts.attempts.slots.total, shift.told(StaleWrites)) == (0, []), (
        "and it was not recorded twice"
    )


async def test_g9_a_job_that_waits_for_a_process_goes_back_at_once(real_time_store: Store, tmp_path: Path) -> None:
    note = tmp_path / "note"
    args = msgspec.json.encode({"note": str(note)}).decode()
    async with at_work(real_time_store, isolated_app, isolated=1, stop_timeout="30s") as shift:
        first = await enqueue(real_time_store, kind="watch_for_closing", args=args)
        await until(lambda: text_of(note))
        second = await enqueue(real_time_store, kind="watch_for_closing", args=args)
        await seen(real_time_store, second, JobState.RUNNING)
        assert await shift.stopped() < 10
    assert costs(await show(real_time_store, second)) == GIVEN_BACK
    view = await show(real_time_store, first)
    assert (view.state, view.result) == (JobState.SUCCEEDED, '"closing"')


async def test_c1_an_isolated_handler_that_does_not_listen_is_killed_and_its_job_goes_back(
    real_time_store: Store, tmp_path: Path
) -> None:
    note = tmp_path / "note"
    args = msgspec.json.encode({"note": str(note)}).decode()
    async with at_work(real_time_store, isolated_app, stop_timeout="500ms", grace="300ms") as shift:
        job_id = await enqueue(real_time_store, kind="ignore_everything", args=args)
        await until(lambda: text_of(note))
        assert 0.5 <= await shift.stopped() < 10
        assert shift.told(HandlerStuck) == [], "a process can be made to stop"
    assert costs(await show(real_time_store, job_id)) == GIVEN_BACK


async def test_c1_a_thousand_handlers_that_obey_end_together(real_time_store: Store) -> None:
    app = App(UNUSED)
    begun: list[str] = []

    @app.job
    async def greet(ctx: Context, name: str) -> None:
        begun.append(name)
        await ctx.wait_closing()
        raise Release

    async with at_work(real_time_store, app, concurrency=1_000, stop_timeout="30s", grace="5s") as shift:
        receipts = await real_time_store.insert([a_job() for _ in range(1_000)])
        await until(lambda: len(begun) == 1_000)
        started = time.monotonic()
        await shift.stopped()
        took = time.monotonic() - started
        assert [event.released for event in shift.told(WorkerClosed)] == [1_000]
    assert took < 10
    assert costs(await show(real_time_store, receipts[-1].job_id)) == GIVEN_BACK


async def test_a18_a_tick_that_does_not_stop_holds_the_close_a_moment_and_is_named(real_time_store: Store) -> None:
    """The time that the database may take beyond the stop timeout, here half a minute, is not the ticks' own."""
    app, blocker = App(UNUSED), Blocker(deaf=True)

    @app.every("1h")
    async def sweep() -> None:
        await blocker()

    async with at_work(real_time_store, app, grace="30s", stop_timeout="0s") as shift:
        await until(lambda: any(loop.running_since for loop in shift.worker._parts.loops if loop.name == "sweep"))
        assert await shift.stopped() < 15
    blocker.over.set()
    [left] = shift.told(TicksLeft)
    assert [name.partition(" ")[0] for name in left.loops] == ["sweep"]

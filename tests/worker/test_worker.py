"""A worker end to end, on both engines: what a handler does decides what is recorded."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace
from tests.support.databases.behind import query
from tests.support.waiting import until

from perdure import (
    App,
    Backoff,
    CancelJob,
    Context,
    JobState,
    JobView,
    Pause,
    Permanent,
    Queue,
    Retry,
    RetryAfter,
    Snooze,
    WorkerSettings,
)
from perdure.domain.jobs.states import FINAL
from perdure.domain.operate.audit import By
from perdure.events import Event, HandlerStuck, UnknownKindSeen, WorkerLost
from perdure.storage.records import JobFilter
from perdure.worker.worker import Worker

QUICK = WorkerSettings(grace=timedelta(milliseconds=200), poll=timedelta(milliseconds=50), stop_timeout=timedelta(0))
AT_ONCE = Retry(attempts=3, backoff=Backoff.none())


@asynccontextmanager
async def at_work(app: App, settings: WorkerSettings = QUICK) -> AsyncIterator[Worker]:
    worker = await app.worker(settings)
    running = asyncio.create_task(worker.run())
    try:
        yield worker
    finally:
        worker.stop()
        await asyncio.wait_for(running, 30)


@pytest.fixture
async def app(engine_url: str) -> AsyncIterator[App]:
    async with App(engine_url) as app:
        yield app


async def ended(app: App, job_id: Any, states: frozenset[JobState] = FINAL) -> JobView:
    store = await app.store()
    async with asyncio.timeout(30):
        while True:
            view = await store.job(job_id)
            if view is not None and view.state in states:
                return view
            await asyncio.sleep(0.01)


def told(app: App, kind: type[Event]) -> list[Any]:
    heard: list[Any] = []
    app.subscribe(lambda event: heard.append(event) if isinstance(event, kind) else None)
    return heard


async def test_a_result_is_kept_with_its_type(app: App) -> None:
    @app.job
    async def add(a: int, b: int) -> dict[str, int]:
        return {"sum": a + b}

    async with at_work(app):
        handle = await add.enqueue(2, b=3)
        assert await handle.result(timeout="30s") == {"sum": 5}


@pytest.mark.parametrize("mode", ["async", "sync"])
async def test_a5_failures_are_retried_and_the_count_is_kept(app: App, mode: str) -> None:
    def flaky(ctx: Context) -> int:
        if ctx.attempt < 3:
            raise ConnectionError(f"no answer {ctx.attempt}")
        return ctx.attempt

    async def flaky_async(ctx: Context) -> int:
        return flaky(ctx)

    job = app.job(name="flaky", retry=AT_ONCE)(flaky if mode == "sync" else flaky_async)
    async with at_work(app):
        handle = await job.enqueue()
        view = await ended(app, handle.id)
    attempts = await (await app.store()).attempts(handle.id)
    assert (view.state, view.failures, view.result) == (JobState.SUCCEEDED, 2, "3")
    assert [(a.number, a.error_type, a.message) for a in attempts] == [
        (1, "ConnectionError", "no answer 1"),
        (2, "ConnectionError", "no answer 2"),
    ]
    assert all(a.traceback and "flaky" in a.traceback and a.finished_at >= a.started_at for a in attempts)


async def test_a4_the_last_failure_makes_a_dead_letter(app: App) -> None:
    @app.job(retry=AT_ONCE)
    async def hopeless() -> None:
        raise ValueError("never")

    async with at_work(app):
        view = await ended(app, (await hopeless.enqueue()).id)
    assert (view.state, view.reason, view.failures) == (JobState.DEAD, "attempts exhausted", 3)
    assert view.last_error == "ValueError: never"


@pytest.mark.parametrize(
    ("verdict", "state", "failures"),
    [
        (Permanent("no use"), JobState.DEAD, 1),
        (CancelJob("not wanted"), JobState.CANCELLED, 0),
        (Snooze("1h"), JobState.WAITING, 0),
        (RetryAfter("1h", "busy"), JobState.RETRYING, 1),
        (Pause("budget"), JobState.PAUSED, 0),
        (SystemExit(3), JobState.RETRYING, 1),
    ],
)
async def test_f3_a_handler_says_what_it_wants_by_raising(
    app: App, verdict: BaseException, state: JobState, failures: int
) -> None:
    @app.job
    async def says() -> None:
        raise verdict

    async with at_work(app):
        view = await ended(app, (await says.enqueue()).id, frozenset({state}))
    assert view.failures == failures


@pytest.mark.parametrize("mode", ["async", "sync"])
async def test_an_attempt_past_its_time_is_stopped_and_counts(app: App, mode: str) -> None:
    async def slow() -> None:
        await asyncio.sleep(60)

    def slow_thread() -> None:
        while True:
            time.sleep(0.005)

    retry = Retry(attempts=1)
    job = app.job(name="slow", timeout="100ms", retry=retry)(slow if mode == "async" else slow_thread)
    async with at_work(app):
        view = await ended(app, (await job.enqueue()).id)
    [attempt] = await (await app.store()).attempts(view.id)
    assert (view.state, attempt.error_type) == (JobState.DEAD, "TimeoutError")


@pytest.mark.parametrize("mode", ["async", "sync"])
async def test_a_handler_that_ignores_its_time_limit_is_given_up(app: App, mode: str) -> None:
    release = threading.Event()

    async def stubborn() -> None:
        while not release.is_set():
            try:
                await asyncio.sleep(0.01)
            except asyncio.CancelledError:
                continue

    def stubborn_thread() -> None:
        release.wait(30)  # no bytecode runs in here, so no exception can be raised either

    job = app.job(name="stubborn", timeout="50ms", retry=Retry.none())(stubborn if mode == "async" else stubborn_thread)
    stuck = told(app, HandlerStuck)
    async with at_work(app, replace(QUICK, threads=1, concurrency=1)):
        view = await ended(app, (await job.enqueue()).id)
        again = await ended(app, (await job.enqueue()).id)  # its place was given to the next
        release.set()
    assert (view.state, again.state) == (JobState.DEAD, JobState.DEAD)
    assert [event.because for event in stuck] == ["timed out", "timed out"]


@pytest.mark.parametrize("mode", ["async", "sync"])
async def test_a_running_job_can_be_cancelled(app: App, mode: str) -> None:
    started = threading.Event()

    async def long() -> None:
        started.set()
        await asyncio.sleep(60)

    def long_thread(ctx: Context) -> None:
        started.set()
        while ctx.stopping is None:
            time.sleep(0.005)
        time.sleep(60)

    job = app.job(name="long")(long if mode == "async" else long_thread)
    store = await app.store()
    async with at_work(app):
        handle = await job.enqueue()
        await until(started.is_set)
        assert await store.cancel(JobFilter(ids=(handle.id,)), By("ops", "wrong customer"), 1) == [handle.id]
        view = await ended(app, handle.id)
    assert view.state is JobState.CANCELLED


async def test_f6_unknown_kinds_are_deferred_and_reported(app: App, engine_url: str) -> None:
    newer = App(engine_url)

    @newer.job
    async def brand_new() -> None: ...

    handle = await newer.enqueue_many([brand_new.call()])
    await newer.close()
    seen = told(app, UnknownKindSeen)
    async with at_work(app):
        view = await ended(app, handle[0].id, frozenset({JobState.PAUSED}))
    assert view.reason.startswith("no handler for this kind")
    assert (view.failures, view.crashes) == (0, 0)
    assert [event.kind for event in seen] == ["brand_new"]
    assert view.due_at is not None
    assert timedelta(seconds=5) < view.due_at - view.since < timedelta(minutes=1)


@pytest.mark.parametrize("poison", ['["n"]', "", "nonsense"])
async def test_a_poisoned_payload_dies_with_its_cause_and_harms_no_other_job(
    app: App, engine_url: str, poison: str
) -> None:
    @app.job
    async def count(n: int) -> int:
        return n

    bad = await count.enqueue(1)
    query(engine_url, f"UPDATE {{job}} SET args = '{poison}'")
    good = await count.enqueue(2)
    async with at_work(app):
        dead, fine = await ended(app, bad.id), await ended(app, good.id)
    assert (dead.state, dead.reason) == (JobState.DEAD, "arguments do not fit the handler")
    assert fine.state is JobState.SUCCEEDED


async def test_a_result_that_cannot_be_kept_is_a_warning_not_a_failure(app: App) -> None:
    @app.job
    async def odd() -> Any:
        return object()

    async with at_work(app):
        view = await ended(app, (await odd.enqueue()).id)
    assert (view.state, view.reason) == (JobState.SUCCEEDED, "done with warnings")
    assert "cannot be stored" in view.warnings[0]


async def test_g9_a_stop_gives_running_jobs_back_at_no_cost(app: App) -> None:
    started: list[int] = []

    @app.job
    async def long() -> None:
        started.append(1)
        await asyncio.sleep(60)

    async with at_work(app):
        handle = await long.enqueue()
        await until(lambda: started)
    view = await ended(app, handle.id, frozenset({JobState.READY}))
    assert (view.failures, view.crashes, view.reason) == (0, 0, "released")


async def test_a_handler_that_blocks_the_loop_does_not_lose_its_lease(app: App) -> None:
    settings = replace(
        QUICK, heartbeat=timedelta(milliseconds=100), lease=timedelta(milliseconds=500), sweep=timedelta(seconds=60)
    )

    @app.job
    async def blocks() -> str:
        time.sleep(1.2)  # noqa: ASYNC251 - that is the point
        return "done"

    other = (await app.store()).sibling()
    async with at_work(app, settings):
        handle = await blocks.enqueue()
        buried = await asyncio.to_thread(_bury_during, other, settings.lease, 1.0)
        view = await ended(app, handle.id)
    assert buried == []
    assert (view.state, view.crashes) == (JobState.SUCCEEDED, 0)


def _bury_during(store: Any, lease: timedelta, seconds: float) -> list[Any]:
    async def sweep() -> list[Any]:
        await store.open()
        found: list[Any] = []
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            found += await store.bury_silent(lease)
            await asyncio.sleep(0.05)
        await store.close()
        return found

    return asyncio.run(sweep())


async def test_a_worker_declared_dead_starts_over_and_its_late_result_is_stale(app: App) -> None:
    started = asyncio.Event()
    finish = asyncio.Event()
    attempts: list[int] = []

    @app.job
    async def slow(ctx: Context) -> int:
        attempts.append(ctx.token)
        started.set()
        try:
            await finish.wait()
        except asyncio.CancelledError:
            await finish.wait()
            return -1  # insists on its result although it was told to stop
        return ctx.token

    lost = told(app, WorkerLost)
    store = await app.store()
    settings = replace(
        QUICK, heartbeat=timedelta(milliseconds=100), grace=timedelta(seconds=20), sweep=timedelta(milliseconds=1)
    )
    async with at_work(app, settings) as worker:
        handle = await slow.enqueue()
        await started.wait()
        [dead] = [view.id for view in await store.workers()]
        await store.retire(dead)  # as a rescuer elsewhere would have it
        await until(lambda: lost)
        await until(lambda: len(attempts) == 2)
        finish.set()
        view = await ended(app, handle.id)
        await until(lambda: worker.stale_writes == 1)
    assert view.result == str(max(attempts))
    assert view.crashes == 1


async def test_weights_and_limits_of_queues_hold(app: App) -> None:
    running: dict[str, int] = {"a": 0, "b": 0}
    most = dict(running)

    @app.job
    async def work(queue: str) -> None:
        running[queue] += 1
        most[queue] = max(most[queue], running[queue])
        await asyncio.sleep(0.02)
        running[queue] -= 1

    calls = [work.using(queue=name).call(name) for name in ("a", "b") for _ in range(20)]
    handles = await app.enqueue_many(calls)
    queues = (Queue("a", concurrency=2), Queue("b", weight=3))
    async with at_work(app, replace(QUICK, queues=queues, concurrency=10)):
        for handle in handles:
            await ended(app, handle.id)
    assert most["a"] == 2
    assert 2 < most["b"] <= 10


async def test_jobs_run_by_priority_then_age(app: App) -> None:
    order: list[str] = []

    @app.job
    async def note(name: str) -> None:
        order.append(name)

    for name, priority in (("late", 9), ("first", 5), ("second", 5), ("urgent", 0)):
        handle = await note.using(priority=priority).enqueue(name)
    async with at_work(app, replace(QUICK, concurrency=1)):
        await ended(app, (await note.using(priority=9).enqueue("last")).id)
    assert order == ["urgent", "first", "second", "late", "last"]
    assert handle.is_new


async def test_delays_are_kept(app: App) -> None:
    @app.job
    async def note() -> None: ...

    async with at_work(app):
        handle = await note.using(delay="300ms").enqueue()
        view = await ended(app, handle.id)
    assert view.started_at is not None
    assert view.started_at - view.created_at >= timedelta(milliseconds=300)


async def test_many_workers_share_one_queue_and_run_each_job_once(app: App) -> None:
    seen: list[int] = []

    @app.job
    async def note(n: int) -> None:
        seen.append(n)
        await asyncio.sleep(0)

    handles = await app.enqueue_many(note.call(n) for n in range(500))
    async with at_work(app, replace(QUICK, concurrency=7)), at_work(app, replace(QUICK, concurrency=11)):
        for handle in handles:
            await ended(app, handle.id)
    assert sorted(seen) == list(range(500))

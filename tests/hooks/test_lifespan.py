"""Lifespans: opened once for a worker, before its first job, and closed after its last one."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.hooks.conftest import AtWork
from tests.support.programs.hooked_jobs import TRAIL
from tests.support.programs.hooked_jobs import app as hooked
from tests.support.waiting import until

from perdure import App, Event, JobState, LifespanError, SettingsError, WorkerSettings
from perdure.clock import SystemClock
from perdure.events import LifespanFailed
from perdure.testing import Sandbox
from perdure.worker.wiring.worker import build_worker


async def test_c10_they_open_before_the_first_job_and_close_after_the_last(app: App, at_work: AtWork) -> None:
    trail: list[str] = []

    @app.lifespan
    async def client() -> AsyncIterator[None]:
        trail.append("open client")
        yield
        trail.append("close client")

    @app.lifespan
    def pool() -> Iterator[None]:
        trail.append("open pool")
        yield
        trail.append("close pool")

    @app.job
    async def work() -> None:
        await asyncio.sleep(0.05)
        trail.append("work")

    handle = await work.enqueue()
    async with at_work():
        await handle.result("30s")
        assert trail == ["open client", "open pool", "work"]
    assert trail[3:] == ["close pool", "close client"]


async def test_two_workers_of_one_event_loop_share_them(app: App, at_work: AtWork) -> None:
    trail: list[str] = []

    @app.lifespan
    def pool() -> Iterator[None]:
        trail.append("open")
        yield
        trail.append("close")

    async with at_work() as one:
        await asyncio.wait_for(one.opened.wait(), 30)
        async with at_work() as other:
            await asyncio.wait_for(other.opened.wait(), 30)
        assert trail == ["open"]
    assert trail == ["open", "close"]


async def test_a_worker_whose_lifespan_cannot_be_opened_does_not_start(app: App) -> None:
    closed: list[str] = []

    @app.lifespan
    async def client() -> AsyncIterator[None]:
        yield
        closed.append("client")

    @app.lifespan
    def pool() -> Iterator[None]:
        if closed == []:
            raise ConnectionError("no route")
        yield

    worker = await app.worker()
    with pytest.raises(LifespanError, match="lifespan pool could not be opened: ConnectionError: no route") as caught:
        await worker.run()
    assert caught.value.name == "pool"
    assert closed == ["client"]
    assert await (await app.store()).workers() == []


async def test_a_stop_is_heard_while_an_async_one_opens(app: App) -> None:
    """What it waits for may never answer; those before it are closed again."""
    trail: list[str] = []

    @app.lifespan
    async def client() -> AsyncIterator[None]:
        async with asyncio.timeout(None):
            yield
        trail.append("client closed")

    @app.lifespan
    async def pool() -> AsyncIterator[None]:
        trail.append("pool opens")
        await asyncio.sleep(600)
        yield

    worker = await app.worker()
    running = asyncio.create_task(worker.run())
    await until(lambda: bool(trail))
    worker.stop()
    await asyncio.wait_for(running, 30)
    assert trail == ["pool opens", "client closed"]
    assert await (await app.store()).workers() == []


async def test_a_stop_is_heard_while_a_plain_one_opens(app: App) -> None:
    """Its thread cannot be stopped; once it is open, it is closed."""
    trail: list[str] = []
    answers = threading.Event()

    @app.lifespan
    def pool() -> Iterator[None]:
        trail.append("opens")
        answers.wait(60)
        yield
        trail.append("closed")

    worker = await app.worker()
    running = asyncio.create_task(worker.run())
    await until(lambda: bool(trail))
    worker.stop()
    await asyncio.wait_for(running, 30)
    assert trail == ["opens"]
    answers.set()
    await until(lambda: trail == ["opens", "closed"])


async def test_one_that_fails_to_close_is_reported_and_the_others_are_closed(app: App, at_work: AtWork) -> None:
    closed: list[str] = []
    heard: list[Event] = []
    app.subscribe(heard.append, LifespanFailed)

    @app.lifespan
    async def client() -> AsyncIterator[None]:
        yield
        closed.append("client")

    @app.lifespan
    async def pool() -> AsyncIterator[None]:
        yield
        raise OSError("already gone")

    async with at_work() as worker:
        await asyncio.wait_for(worker.opened.wait(), 30)
    assert closed == ["client"]
    [failed] = heard
    assert isinstance(failed, LifespanFailed)
    assert (failed.lifespan, failed.error) == ("pool", "OSError: already gone")


async def test_handlers_that_block_all_threads_do_not_keep_them_from_closing(
    app: App, at_work: AtWork, no_free_thread: None
) -> None:
    closed: list[str] = []

    @app.lifespan
    def pool() -> Iterator[None]:
        yield
        closed.append("pool")

    async with at_work() as worker:
        await asyncio.wait_for(worker.opened.wait(), 30)
    assert closed == ["pool"]


async def test_isolated_attempts_open_them_in_their_own_processes(
    engine_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trail = tmp_path / "trail"
    monkeypatch.setenv(TRAIL, str(trail))
    async with App(engine_url) as app:
        settings = WorkerSettings(poll="50ms", stop_timeout=0)
        worker = build_worker(
            store=await app.store(),
            kinds=hooked.kinds,
            settings=settings,
            emitter=app.events,
            clock=SystemClock(),
            hooks=hooked.hooks,
        )
        running = asyncio.create_task(worker.run())
        for name in ("work_async", "work_sync"):
            app.kinds[name] = hooked.kinds[name]
            pid = await (await app.job_named(name).enqueue()).result("60s")
            lines = [line for line in trail.read_text().splitlines() if line.startswith(f"{pid} ")]
            steps = [line.removeprefix(f"{pid} ") for line in lines]
            opening, closing = ["open client", "open pool"], ["close pool", "close client"]
            assert steps == [*opening, f"before {name}", name, f"after {name}", *closing]
        worker.stop()
        await asyncio.wait_for(running, 30)


async def test_a_sandbox_opens_and_closes_them_around_each_drain(app: App) -> None:
    trail: list[str] = []

    @app.lifespan
    async def client() -> AsyncIterator[None]:
        trail.append("open")
        yield
        trail.append("close")

    @app.job
    async def work() -> None:
        trail.append("work")

    async with Sandbox(app) as box:
        handle = await work.enqueue()
        await box.drain()
        assert (await handle.view()).state is JobState.SUCCEEDED
    assert trail == ["open", "work", "close"]


def takes_app(app: App) -> Iterator[None]:
    yield


def opens_nothing() -> None: ...


@pytest.mark.parametrize(
    ("function", "problem"),
    [
        (opens_nothing, "lifespan opens_nothing must yield once"),
        (takes_app, "lifespan takes_app must take no arguments"),
    ],
)
def test_what_cannot_be_one_is_refused_by_name(function: Any, problem: str) -> None:
    with pytest.raises(SettingsError, match=problem):
        App("sqlite:///unused.db").lifespan(function)

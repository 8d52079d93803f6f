"""Every job that a process stores is counted once, by whatever part of it the job was stored."""

from __future__ import annotations

import asyncio
import importlib
import sys
import threading
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import pytest
from tests.signals.metrics.exposed import Exposed
from tests.support.waiting import PATIENCE

from perdure import App, JobFilter, JobNotSuccessful, Page, Permanent, WorkerSettings
from perdure.domain.operate.webhook import DELIVERY
from perdure.enqueue.counts import EnqueueCounts
from perdure.metrics import exporter
from perdure.testing import Sandbox
from perdure.webhooks import Webhooks

PROGRAM = "tests.support.programs.counted_jobs"
FAST = WorkerSettings(poll="50ms", stop_timeout="5s", grace="5s")


async def stored(app: App) -> Counter[tuple[str, str]]:
    """What the database holds."""
    jobs = await (await app.store()).jobs(JobFilter(), Page(500))
    return Counter((job.queue, job.kind) for job in jobs)


@asynccontextmanager
async def at_work(app: App) -> AsyncIterator[None]:
    worker = await app.worker(FAST)
    running = asyncio.create_task(worker.run())
    try:
        yield
    finally:
        worker.stop()
        await asyncio.wait_for(running, PATIENCE)


async def test_the_links_of_a_chain_are_counted_as_they_are_made(engine_url: str) -> None:
    app = App(engine_url)

    @app.job
    async def first() -> int:
        return 1

    @app.job(queue="sums")
    async def add(result: int, more: int) -> int:
        return result + more

    @app.job
    async def refuse(result: int) -> None:
        raise Permanent(str(result))

    async with app:
        metrics = exporter(app)  # listens to the events of what handlers spawn
        async with at_work(app):
            assert await (await (first.call() | add.after(10) | add.after(100)).enqueue()).result("30s") == 111
            with pytest.raises(JobNotSuccessful):
                await (await (first.call() | refuse.after() | add.after(1)).enqueue()).result("30s")
        seen = Exposed((await metrics.exposition()).body.decode())
        assert seen.value("perdure_enqueued_total", queue="sums", kind="add") == 2
        assert seen.value("perdure_enqueued_total", queue="default", kind="refuse") == 1
        assert seen.value("perdure_enqueued_total", queue="default", kind="first") == 2
        assert seen.total("perdure_enqueued_total") == (await stored(app)).total()


@pytest.fixture
def program(engine_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[App]:
    """An app whose module the processes of its attempts import anew."""
    monkeypatch.setenv("PERDURE_TEST_URL", engine_url)
    monkeypatch.delitem(sys.modules, PROGRAM, raising=False)
    yield importlib.import_module(PROGRAM).app
    sys.modules.pop(PROGRAM, None)


async def test_what_isolated_handlers_enqueue_is_counted_by_their_worker(program: App) -> None:
    async with program:
        metrics = exporter(program)
        async with at_work(program):
            assert await (await program.job_named("apart").enqueue()).result("60s") == 4
            await (await program.job_named("apart_blocking").enqueue()).result("60s")
        seen = Exposed((await metrics.exposition()).body.decode())
        assert (
            seen.value("perdure_enqueued_total", queue="leaves", kind="leaf")
            == (await stored(program))["leaves", "leaf"]
        )
        assert seen.total("perdure_enqueued_total") == (await stored(program)).total()


async def test_deliveries_of_webhooks_are_counted(engine_url: str) -> None:
    app = App(engine_url)

    @app.job
    async def fine() -> None: ...

    webhooks = Webhooks(app, allow_private=True)
    webhooks.to("shop", "http://127.0.0.1:9/", secret="a secret of some length")  # noqa: S106 - of the test
    async with Sandbox(app, url=engine_url) as box:
        await webhooks.dispatcher.tick()
        await fine.enqueue()
        await box.drain()
        box.travel("2s")
        await webhooks.dispatcher.tick()
        await webhooks.dispatcher.tick()
        assert app.enqueued.jobs["perdure-webhooks", DELIVERY] == 1


def test_threads_that_count_at_the_same_time_lose_nothing() -> None:
    counts, before = EnqueueCounts(), sys.getswitchinterval()

    def count() -> None:
        for _ in range(5_000):
            counts.add("q", "k")

    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=count) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(before)
    assert counts.take() == [("q", "k", 20_000)]
    assert counts.take() == []

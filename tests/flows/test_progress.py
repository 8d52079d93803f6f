"""How far a job is can be seen from outside while it runs."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest
from tests.support.builders.jobs import enqueue
from tests.support.waiting import until, until_sync
from tests.support.working import at_work, found, seen

from perdure import App, ArgumentError, Context, SyncContext
from perdure.storage.port import Store
from perdure.testing import Sandbox


@pytest.mark.parametrize("mode", ["async", "sync"])
async def test_c12_progress_is_seen_while_the_job_runs(real_time_store: Store, mode: str) -> None:
    app = App("sqlite:///unused.db")
    go_on = threading.Event()

    async def in_task(ctx: Context, name: str) -> None:
        ctx.progress(3, 10, name)
        await asyncio.to_thread(go_on.wait, 30)

    def in_thread(ctx: SyncContext, name: str) -> None:
        ctx.progress(3, 10, name)
        go_on.wait(30)

    app.job(name="greet")(in_task if mode == "async" else in_thread)
    async with at_work(real_time_store, app, stop_timeout="20s"):
        job_id = await enqueue(real_time_store)
        progress = await found(lambda: real_time_store.progress(job_id))
        go_on.set()
        await seen(real_time_store, job_id)
    assert (progress.current, progress.total, progress.note) == (3, 10, "Ada")


@pytest.mark.parametrize("mode", ["async", "sync"])
async def test_c12_a_loop_may_call_it_as_often_as_it_likes_and_the_last_word_is_kept(
    app: App, box: Sandbox, mode: str
) -> None:
    writes: list[int] = []
    store = await app.store()

    async def in_task(ctx: Context) -> None:
        ctx.progress(0, 10_000)
        await until(lambda: writes)
        for number in range(10_000):
            ctx.progress(number, 10_000)

    def in_thread(ctx: SyncContext) -> None:
        ctx.progress(0, 10_000)
        until_sync(lambda: writes)
        for number in range(10_000):
            ctx.progress(number, 10_000)

    job: Any = app.job(name="count")(in_task if mode == "async" else in_thread)
    before = store.save_progress

    async def save_progress(progress: Any) -> None:
        writes.append(len(progress))
        await before(progress)

    store.save_progress = save_progress  # type: ignore[method-assign] # counted
    handle = await job.enqueue()
    await box.drain()
    progress = await handle.progress()
    assert progress is not None
    assert (progress.current, progress.total, progress.at) == (9_999, 10_000, box.now)
    assert 2 <= len(writes) <= 20, "once every half second, and once at the end"
    assert (await (await app.desk("me")).job(handle.id)).progress == progress


async def test_progress_that_is_none_is_refused_by_name(app: App, box: Sandbox) -> None:
    @app.job
    async def count(ctx: Context) -> None:
        with pytest.raises(ArgumentError, match="current must be a number"):
            ctx.progress("three")  # type: ignore[arg-type] # on purpose
        with pytest.raises(ArgumentError, match="total must be a number"):
            ctx.progress(3, float("nan"))
        with pytest.raises(ArgumentError, match="current must be a number"):
            ctx.progress(10**400)
        with pytest.raises(ArgumentError, match="note must be text or None, got 7"):
            ctx.progress(3, 10, 7)  # type: ignore[arg-type] # on purpose

    handle = await count.enqueue()
    assert (await box.drain(raising=True)).succeeded == 1
    assert await handle.progress() is None

"""A job comes to the same end in a drain as under a worker."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

import pytest

from perdure import (
    App,
    Backoff,
    CancelJob,
    Context,
    Finish,
    Jitter,
    Pause,
    Permanent,
    Release,
    Retry,
    RetryAfter,
    Snooze,
    Unique,
    WorkerSettings,
)
from perdure.testing import Sandbox
from perdure.worker.settings import Queue

PLAIN = Retry(attempts=2, backoff=Backoff.fixed("1m"), jitter=Jitter.none())


def declare(app: App) -> Callable[[], Awaitable[Any]]:
    """Jobs of every sort and ending; returns what enqueues them."""

    @app.job(retry=PLAIN)
    async def end(ctx: Context, how: str) -> str:
        endings = {
            "failed": ValueError("broken"),
            "later": RetryAfter("5m", "busy"),
            "permanent": Permanent("no"),
            "snoozed": Snooze("10m"),
            "paused": Pause("budget", "1h"),
            "released": Release("2m"),
            "cancelled": CancelJob("never mind"),
            "warned": Finish("no picture"),
        }
        if how in endings:
            raise endings[how]
        return f"{how} on attempt {ctx.attempt}"

    @app.job(retry=Retry(attempts=3, backoff=Backoff.none(), jitter=Jitter.none()))
    def sync_third(ctx: Context) -> int:
        if ctx.attempt < 3:
            raise KeyError(ctx.attempt)
        return ctx.attempt

    @app.job(timeout="30ms", retry=PLAIN)
    async def slow() -> None:
        await asyncio.Event().wait()

    @app.job(unique=Unique(by="n"), queue="mail")
    async def chain(n: int) -> None:
        if n:
            await chain.enqueue(n - 1)

    async def enqueue() -> None:
        for how in (
            "done",
            "failed",
            "later",
            "permanent",
            "snoozed",
            "paused",
            "released",
            "cancelled",
            "warned",
        ):
            await end.enqueue(how)
        await sync_third.enqueue()
        await slow.enqueue()
        await chain.enqueue(3)
        await chain.enqueue(3)
        await end.using(delay="1h").enqueue("scheduled")

    return enqueue


async def told(box: Sandbox) -> list[dict[str, Any]]:
    """All that can be said of each job, without what names it and whoever ran it."""
    stories: list[dict[str, Any]] = []
    for one in box.enqueued():
        job = await box.job(one.id)
        attempts = [
            (attempt.number, attempt.reason, attempt.error_type, attempt.message, attempt.next_at)
            for attempt in await box.attempts(one.id)
        ]
        hidden = {"id", "worker"}
        fields = {name: getattr(job, name) for name in job.__struct_fields__ if name not in hidden}
        stories.append(fields | {"attempts": attempts})
    return stories


@pytest.mark.parametrize("journey", [timedelta(0), timedelta(hours=2)])
async def test_the_records_are_the_same(app: App, journey: timedelta) -> None:
    enqueue = declare(app)
    async with Sandbox(app) as box:
        start = box.now
        await enqueue()
        drained = await box.drain()
        box.travel(journey)
        await box.drain()
        by_drain = await told(box)
    async with Sandbox(app, start=start) as box:
        await enqueue()
        await work(app, drained.attempts)
        box.travel(journey)
        await work(app, None)
        by_worker = await told(box)

    assert len(by_drain) == 16
    assert by_drain == by_worker


async def work(app: App, attempts: int | None) -> None:
    """Let a real worker run until nothing is due, and so many attempts are made."""
    worker = await app.worker(WorkerSettings(queues=(Queue("default"), Queue("mail"))))
    running = asyncio.create_task(worker.run())
    store = await app.store()
    async with asyncio.timeout(20):
        while True:
            ready = [count for count in await store.counts() if count.state in {"ready", "running"}]
            promoted = await store.promote(100)
            if not ready and not promoted.total and worker.acknowledged >= (attempts or 0):
                break
            await asyncio.sleep(0.01)
    worker.stop()
    await running

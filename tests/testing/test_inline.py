"""Inline mode runs jobs inside the call that enqueues them, on the way that every job goes."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import dataclass
from decimal import Decimal

import pytest

from perdure import App, Backoff, Context, Jitter, JobState, PayloadError, Retry, Snooze, Unique
from perdure.testing import Sandbox


@dataclass
class Order:
    number: int
    price: Decimal


async def test_the_job_is_done_when_enqueue_returns(app: App) -> None:
    @app.job
    async def price(ctx: Context, order: Order) -> Decimal:
        assert isinstance(order, Order)
        return order.price * ctx.attempt

    async with Sandbox(app, inline=True) as box:
        handle = await price.enqueue(Order(1, Decimal("9.90")))
        assert (await handle.view()).state is JobState.SUCCEEDED
        assert await handle.result() == Decimal("9.90")
        box.assert_enqueued_once(price, Order(1, Decimal("9.90")))


async def test_arguments_are_checked_and_encoded_as_ever(app: App) -> None:
    given = [1]

    @app.job
    async def change(numbers: list[int]) -> None:
        numbers.append(2)

    async with Sandbox(app, inline=True):
        await change.enqueue(given)
        with pytest.raises(PayloadError, match="numbers"):
            await change.enqueue(["one"])  # type: ignore[list-item]
    assert given == [1]


async def test_an_error_is_raised_to_the_caller_and_recorded(app: App) -> None:
    error = ValueError("no")

    @app.job(retry=Retry(attempts=2, backoff=Backoff.fixed("1m"), jitter=Jitter.none()))
    async def fail() -> None:
        raise error

    async with Sandbox(app, inline=True) as box:
        with pytest.raises(ValueError, match="no") as raised:
            await fail.enqueue()
        assert raised.value is error
        (job,) = box.enqueued(fail)
        assert (await box.job(job.id)).state is JobState.RETRYING
        assert [attempt.message for attempt in await box.attempts(job.id)] == ["no"]
        assert (await box.drain(travel=True)).dead == 1


async def test_without_raising_an_error_is_only_recorded(app: App, box: Sandbox) -> None:
    @app.job(retry=Retry.none())
    async def fail() -> None:
        raise ValueError("no")

    with box.inline(raising=False):
        await fail.enqueue()
    assert [job.last_error for job in await box.dead()] == ["ValueError: no"]
    handle = await fail.enqueue()
    assert (await handle.view()).state is JobState.READY


async def test_what_is_no_failure_is_not_raised(app: App) -> None:
    @app.job
    async def snooze() -> None:
        raise Snooze("1h")

    async with Sandbox(app, inline=True):
        assert (await (await snooze.enqueue()).view()).state is JobState.WAITING


async def test_a_job_that_may_be_tried_again_at_once_is(app: App) -> None:
    @app.job(retry=Retry(attempts=3, backoff=Backoff.none(), jitter=Jitter.none()))
    async def third_time(ctx: Context) -> int:
        if ctx.attempt < 3:
            raise ValueError
        return ctx.attempt

    async with Sandbox(app, inline=True):
        assert await (await third_time.enqueue()).result() == 3


async def test_a_job_for_later_waits_until_it_is_drained(app: App) -> None:
    @app.job
    async def work() -> None: ...

    async with Sandbox(app, inline=True) as box:
        handle = await work.using(delay="1h").enqueue()
        assert (await handle.view()).state is JobState.SCHEDULED
        assert (await box.drain(travel="1h")).succeeded == 1


async def test_jobs_enqueued_by_jobs_run_inside_them(app: App) -> None:
    story: list[str] = []

    @app.job
    async def outer() -> None:
        story.append("outer begins")
        await inner.enqueue()
        await asyncio.to_thread(inner_sync.enqueue_sync)
        story.append("outer ends")

    @app.job
    async def inner() -> None:
        story.append("inner")

    @app.job
    def inner_sync() -> None:
        story.append("inner sync")
        inner.enqueue_sync()

    async with Sandbox(app, inline=True):
        await outer.enqueue()
    assert story == ["outer begins", "inner", "inner sync", "inner", "outer ends"]


async def test_an_error_deep_down_reaches_the_outermost_caller(app: App) -> None:
    @app.job
    async def outer() -> None:
        await inner.enqueue()

    @app.job
    async def inner() -> None:
        raise KeyError("deep")

    async with Sandbox(app, inline=True):
        with pytest.raises(KeyError, match="deep"):
            await outer.enqueue()


async def test_jobs_without_end_are_noticed(app: App) -> None:
    @app.job
    async def again() -> None:
        await again.enqueue()

    async with Sandbox(app, inline=True):
        with pytest.raises(AssertionError, match="more than 50 deep"):
            await again.enqueue()


async def test_each_of_many_enqueues_at_once_returns_after_its_own_job(app: App) -> None:
    @app.job
    async def work(n: int) -> int:
        await asyncio.sleep(0)
        return n

    async with Sandbox(app, inline=True):
        handles = await asyncio.gather(*(work.enqueue(n) for n in range(20)))
        assert [(await handle.view()).state for handle in handles] == [JobState.SUCCEEDED] * 20
        many = await app.enqueue_many(work.call(n) for n in range(20))
        assert [(await handle.view()).state for handle in many] == [JobState.SUCCEEDED] * 20


async def test_an_existing_job_is_not_run_again(app: App) -> None:
    runs: list[str] = []

    @app.job(unique=Unique(by="url", states=list(JobState)))
    async def audit(url: str) -> None:
        runs.append(url)

    async with Sandbox(app, inline=True) as box:
        assert (await audit.enqueue("a")).is_new
        assert not (await audit.enqueue("a")).is_new
        box.assert_enqueued_once(audit)
    assert runs == ["a"]


def test_without_an_event_loop_it_is_the_tests_own_thread_and_error(app: App) -> None:
    threads: list[int] = []

    @app.job
    def work() -> None:
        threads.append(threading.get_ident())
        raise LookupError("mine")

    with Sandbox(app, inline=True), pytest.raises(LookupError, match="mine"):
        work.enqueue_sync()
    assert threads == [threading.get_ident()]

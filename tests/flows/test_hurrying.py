"""A job that waits by the clock goes on when an operator says so, and not only when its time has come (B14)."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from perdure import App, Backoff, ChildResult, Context, EventTimeout, JobState, Pending, Retry
from perdure.testing import Sandbox

HOUR = timedelta(hours=1)


class Slow:
    """Something that has no answer at first."""

    def __init__(self, error: Exception) -> None:
        self._error = error
        self.asked = 0

    async def answer(self) -> str:
        self.asked += 1
        if self.asked == 1:
            raise self._error
        return "there"


def sleeping(app: App) -> Any:
    @app.job
    async def wait(ctx: Context) -> str:
        await ctx.sleep("2h")
        return "there"

    return wait


def polling(app: App) -> Any:
    authority = Slow(Pending("2h"))

    @app.job
    async def wait(ctx: Context) -> str:
        return await ctx.poll("issued", authority.answer, within="1d")

    return wait


def trying(app: App) -> Any:
    flaky = Slow(OSError("away"))

    @app.job(retry=Retry.none())
    async def wait(ctx: Context) -> str:
        return await ctx.step("fetch", flaky.answer, retry=Retry(attempts=2, backoff=Backoff.fixed("2h")))

    return wait


@pytest.mark.parametrize("declare", [sleeping, polling, trying])
async def test_b14_run_now_ends_what_is_waited_for_by_the_clock(app: App, box: Sandbox, declare: Any) -> None:
    handle = await declare(app).enqueue()
    await box.drain()
    await (await app.desk("ops")).run_now(handle.id)
    await box.drain()
    view = await box.job(handle)
    assert (view.state, view.result, view.failures) == (JobState.SUCCEEDED, '"there"', 0)


@pytest.mark.parametrize("declare", [sleeping, polling, trying])
async def test_b14_a_job_that_is_rescheduled_goes_on_at_its_new_time(app: App, box: Sandbox, declare: Any) -> None:
    handle, begun = await declare(app).enqueue(), box.now
    await box.drain()
    await (await app.desk("ops")).reschedule(handle.id, begun + HOUR)
    await box.drain(travel=True)
    view = await box.job(handle)
    assert (view.state, view.finished_at) == (JobState.SUCCEEDED, begun + HOUR)


async def test_waits_for_an_event_and_for_children_are_not_cut_short(app: App, box: Sandbox) -> None:
    """Their times are limits: to reach them early would be to give up."""

    @app.job
    async def load() -> int:
        return 1

    @app.job
    async def pay(ctx: Context) -> str:
        try:
            return str(await ctx.wait_for("paid", timeout="2h"))
        except EventTimeout:
            return "never paid"

    @app.job
    async def collect(ctx: Context) -> list[ChildResult[int]]:
        return await ctx.gather([load.using(delay="1h").call()], within="2h", failures="collect")

    desk = await app.desk("ops")
    paid, collected = await pay.enqueue(), await collect.enqueue()
    await box.drain()
    await desk.run_now([paid.id, collected.id])
    await box.drain()
    assert ((await box.job(paid)).state, (await box.job(collected)).state) == (JobState.WAITING, JobState.WAITING)
    await desk.emit("paid", "3")
    await box.drain(travel=True)
    assert await paid.result() == "3"
    assert [child.value for child in await collected.result()] == [1]

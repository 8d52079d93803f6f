"""`ctx.warn`: a job that is done may have something to say besides its result (E4)."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.programs import isolated_flows

from perdure import App, Backoff, Context, Jitter, JobState, Retry, SyncContext
from perdure.testing import Sandbox

TWICE = Retry(attempts=2, backoff=Backoff.fixed("1m"), jitter=Jitter.none())
SAID = ("two of three pictures", "the mirror was slow")


async def test_a_warning_is_kept_beside_the_result(app: App, box: Sandbox) -> None:
    """Of an async handler and of a sync one; what is said again after a wait is said once."""

    @app.job
    async def audit(ctx: Context) -> int:
        ctx.warn(SAID[0])
        await ctx.sleep("1h")
        ctx.warn(SAID[1])
        return 3

    @app.job
    def audit_in_a_thread(ctx: SyncContext) -> int:
        ctx.warn(SAID[0])
        ctx.sleep("1h")
        ctx.warn(SAID[1])
        return 3

    for handle in (await audit.enqueue(), await audit_in_a_thread.enqueue()):
        await box.drain(travel=True)
        view = await box.job(handle)
        assert (view.state, view.reason, view.result) == (JobState.SUCCEEDED, "done with warnings", "3")
        assert view.warnings == SAID


async def test_only_the_attempt_that_ends_well_is_heard(app: App, box: Sandbox) -> None:
    @app.job(retry=TWICE)
    async def audit(ctx: Context) -> None:
        ctx.warn(f"attempt {ctx.attempt}")
        if ctx.attempt == 1:
            raise ValueError("once more")

    handle = await audit.enqueue()
    await box.drain(travel=True)
    assert (await box.job(handle)).warnings == ("attempt 2",)


async def test_warnings_of_steps_and_of_the_handler_stand_side_by_side(app: App, box: Sandbox) -> None:
    def broken() -> None:
        raise OSError("gone")

    @app.job
    async def audit(ctx: Context) -> None:
        ctx.warn("shot")
        await ctx.step("shot", broken, optional=True)

    handle = await audit.enqueue()
    await box.drain()
    assert (await box.job(handle)).warnings == ("shot", "step shot gave up: OSError: gone")


async def test_very_many_warnings_are_counted_and_a_long_one_is_cut(app: App, box: Sandbox) -> None:
    @app.job
    async def audit(ctx: Context) -> None:
        ctx.warn("x" * 10_000)
        for number in range(150):
            ctx.warn(f"page {number}\0")

    handle = await audit.enqueue()
    await box.drain()
    warnings = (await box.job(handle)).warnings
    assert len(warnings) == 101
    assert len(warnings[0]) <= 500
    assert warnings[-1] == "and 51 more warnings, of which 100 are kept"


@pytest.mark.parametrize("nonsense", ["", "  ", None, 5])
async def test_what_is_no_warning_is_refused(app: App, box: Sandbox, nonsense: Any) -> None:
    @app.job(retry=Retry.none())
    async def audit(ctx: Context) -> None:
        ctx.warn(nonsense)

    handle = await audit.enqueue()
    await box.drain()
    assert "text of a warning must not be empty, got" in ((await box.job(handle)).last_error or "")


async def test_a_warning_inside_a_step_is_refused_as_it_would_be_said_only_once(app: App, box: Sandbox) -> None:
    @app.job(retry=Retry.none())
    async def audit(ctx: Context) -> None:
        async def look() -> None:
            ctx.warn("dark")

        await ctx.step("look", look)

    handle = await audit.enqueue()
    await box.drain()
    assert "step look holds ctx.warn, and would not say it again" in ((await box.job(handle)).last_error or "")


async def test_a_handler_in_a_process_of_its_own_warns_in_the_same_way(engine_url: str) -> None:
    async with Sandbox(isolated_flows.app, url=engine_url, isolate=True) as box:
        handle = await isolated_flows.warned.enqueue()
        await box.drain()
        view = await box.job(handle)
    assert (view.result, view.warnings) == ('"OSError: gone"', ("said", "step shot gave up: OSError: gone"))

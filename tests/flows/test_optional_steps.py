"""An optional step that fails does not fail the job, and leaves a warning (E4)."""

from __future__ import annotations

import pytest

from perdure import App, Backoff, Context, Jitter, JobState, Permanent, Retry, SyncContext
from perdure.events import Event, StepGivenUp
from perdure.testing import Sandbox

TWICE = Retry(attempts=2, backoff=Backoff.fixed("1m"), jitter=Jitter.none())


class Camera:
    """Takes pictures, or not."""

    def __init__(self, broken: bool, error: type[Exception] = OSError) -> None:
        self.broken = broken
        self.error = error
        self.clicks = 0

    async def shoot(self, size: str) -> str:
        self.clicks += 1
        if self.broken:
            raise self.error(f"no picture of {size}")
        return f"{size}.png"


@pytest.mark.parametrize(
    ("desktop", "mobile"), [(False, False), (True, False), (False, True), (True, True)], ids=["none", "1", "2", "both"]
)
async def test_e4_the_pdf_is_made_whichever_screenshot_fails_and_the_webhook_says_so_truthfully(
    app: App, box: Sandbox, desktop: bool, mobile: bool
) -> None:
    cameras = {"desktop": Camera(desktop), "mobile": Camera(mobile)}

    @app.job
    async def audit(ctx: Context) -> dict[str, object]:
        shots = [await ctx.step(size, camera.shoot, size, optional=True) for size, camera in cameras.items()]
        pdf = await ctx.step("pdf", lambda: f"pdf of {shots}")
        await ctx.sleep("1m")
        errors = [error for size in cameras if (error := ctx.step_error(size)) is not None]
        included = [shot for shot in shots if shot is not None]
        return {"pdf": pdf, "screenshotsIncluded": included, "screenshotError": errors}

    handle = await audit.enqueue()
    await box.drain(travel=True)
    view = await box.job(handle)

    failed = [size for size, camera in cameras.items() if camera.broken]
    shots = [f"{size}.png" for size in cameras if size not in failed]
    result = await handle.result()
    assert result["screenshotsIncluded"] == shots
    assert result["screenshotError"] == [f"OSError: no picture of {size}" for size in failed], "after a replay, too"
    assert view.warnings == tuple(f"step {size} gave up: OSError: no picture of {size}" for size in failed)
    assert (view.state, view.reason) == (JobState.SUCCEEDED, "done with warnings" if failed else "done")
    assert [camera.clicks for camera in cameras.values()] == [1, 1]


async def test_e4_with_screenshots_required_the_audit_fails(app: App, box: Sandbox) -> None:
    camera = Camera(broken=True)

    @app.job(retry=Retry.none())
    async def audit(ctx: Context) -> None:
        await ctx.step("screenshots", camera.shoot, "desktop")

    handle = await audit.enqueue()
    await box.drain()
    view = await box.job(handle)
    assert (view.state, view.last_error) == (JobState.DEAD, "OSError: no picture of desktop")


async def test_e4_an_optional_step_has_its_own_tries_first(app: App, box: Sandbox) -> None:
    camera = Camera(broken=True)

    @app.job
    async def audit(ctx: Context) -> str | None:
        return await ctx.step("screenshots", camera.shoot, "desktop", optional=True, retry=TWICE)

    handle = await audit.enqueue()
    await box.drain(travel=True)
    view = await box.job(handle)
    assert (camera.clicks, view.result, view.failures) == (2, None, 0)
    assert view.warnings == ("step screenshots gave up: OSError: no picture of desktop",)


async def test_e4_what_trying_again_cannot_mend_is_given_up_at_once(app: App, box: Sandbox) -> None:
    camera = Camera(broken=True, error=Permanent)

    @app.job
    def audit(ctx: SyncContext) -> str | None:
        return ctx.step("screenshots", camera.shoot, "desktop", optional=True, retry=TWICE)

    handle = await audit.enqueue()
    await box.drain(travel=True)
    view = await box.job(handle)
    assert (camera.clicks, view.warnings) == (
        1,
        ("step screenshots gave up: perdure.Permanent: no picture of desktop",),
    )


async def test_e4_a_step_that_is_no_longer_optional_says_so(app: App, box: Sandbox) -> None:
    camera, required = Camera(broken=True), False

    @app.job
    async def audit(ctx: Context) -> None:
        if required:
            await ctx.step("screenshots", camera.shoot, "desktop")
        else:
            await ctx.step("screenshots", camera.shoot, "desktop", optional=True)
        await ctx.sleep("1h")

    handle = await audit.enqueue()
    await box.drain()
    required = True
    await box.drain(travel=True)
    view = await box.job(handle)
    assert view.state is JobState.DEAD
    assert "step screenshots was optional when it gave up (OSError: no picture of desktop)" in (view.last_error or "")


async def test_e4_the_log_reports_a_step_that_was_given_up_once(app: App, box: Sandbox) -> None:
    told: list[Event] = []
    app.subscribe(told.append)
    camera = Camera(broken=True)

    @app.job
    async def audit(ctx: Context) -> None:
        await ctx.step("screenshots", camera.shoot, "desktop", optional=True, retry=TWICE)
        await ctx.sleep("1h")

    handle = await audit.enqueue()
    await box.drain(travel=True)
    given_up = StepGivenUp(handle.id, "audit", "screenshots", 2, "OSError: no picture of desktop")
    assert [event for event in told if isinstance(event, StepGivenUp)] == [given_up]


async def test_a_step_that_waits_is_an_error_of_the_program_and_no_warning(app: App, box: Sandbox) -> None:
    """The option `optional` does not cover that."""

    @app.job
    async def nest(ctx: Context) -> None:
        async def outer() -> None:
            await ctx.sleep("1h")

        await ctx.step("outer", outer, optional=True, retry=TWICE)

    handle = await nest.enqueue()
    await box.drain()
    view = await box.job(handle)
    assert (view.state, view.failures) == (JobState.DEAD, 1)
    assert "step outer holds ctx.sleep" in (view.last_error or "")


async def test_e4_what_a_step_failed_with_is_reported_to_sync_handlers_and_after_a_failed_attempt(
    app: App, box: Sandbox
) -> None:
    camera, attempts = Camera(broken=True), []

    @app.job(retry=TWICE)
    def audit(ctx: SyncContext) -> str | None:
        for _ in range(2):
            ctx.step("shot", camera.shoot, "desktop", optional=True)
        attempts.append((ctx.step_error("shot"), ctx.step_error("shot#2")))
        if len(attempts) == 1:
            raise ValueError("once more")
        return ctx.step_error("shot#2")

    handle = await audit.enqueue()
    await box.drain(travel=True)
    said = "OSError: no picture of desktop"
    assert (await handle.result(), attempts, camera.clicks) == (said, [(said, said)] * 2, 2)


async def test_e4_a_step_that_was_not_taken_has_no_error(app: App, box: Sandbox) -> None:
    @app.job(retry=Retry.none())
    async def audit(ctx: Context) -> str | None:
        await ctx.step("shot", Camera(broken=False).shoot, "desktop", optional=True)
        assert ctx.step_error("shot") is None
        return ctx.step_error("shots")

    handle = await audit.enqueue()
    await box.drain()
    error = (await box.job(handle)).last_error or ""
    assert "name must be that of a step which this attempt has taken (shot), got 'shots'" in error

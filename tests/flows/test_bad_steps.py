"""Steps that cannot be meant: refused by name, or told about."""

from __future__ import annotations

from typing import Any

import pytest

from perdure import App, Context, Retry
from perdure.errors import StepError
from perdure.testing import Sandbox


@pytest.mark.parametrize("name", ["", " ", "a#2", "a\nb", "x" * 201, 7])
async def test_a_name_that_cannot_be_kept_is_refused(app: App, box: Sandbox, name: Any) -> None:
    @app.job(retry=Retry.none())
    async def read(ctx: Context) -> None:
        await ctx.step(name, len, "abc")

    handle = await read.enqueue()
    await box.drain()
    assert (await box.job(handle)).last_error.startswith("perdure.ArgumentError: name must")  # type: ignore[union-attr]


async def test_what_is_no_policy_is_refused_before_the_step_is_tried(app: App, box: Sandbox) -> None:
    @app.job(retry=Retry.none())
    async def read(ctx: Context) -> None:
        wrong: Any = 3
        await ctx.step("x", len, "abc", retry=wrong)

    handle = await read.enqueue()
    await box.drain()
    error = "perdure.SettingsError: retry of step 'x' must be a Retry, such as Retry(attempts=3), or a function"
    assert (await box.job(handle)).last_error == f"{error} that gives one, got 3"


async def test_a_result_that_json_has_no_number_for_is_not_kept_as_null(app: App, box: Sandbox) -> None:
    @app.job(retry=Retry.none())
    async def measure(ctx: Context) -> None:
        await ctx.step("mean", float, "nan")

    handle = await measure.enqueue()
    await box.drain()
    assert "step mean returned a value that cannot be stored as JSON: NaN and infinity" in str(
        (await box.job(handle)).last_error
    )


@pytest.mark.filterwarnings("ignore:coroutine .* was never awaited:RuntimeWarning")
async def test_a_step_that_was_not_awaited_is_a_warning(app: App, box: Sandbox) -> None:
    @app.job
    async def read(ctx: Context) -> None:
        await ctx.step("first", len, "abc")
        ctx.step("second", len, "abc")
        ctx.sleep("1h")

    handle = await read.enqueue()
    await box.drain()
    view = await box.job(handle)
    assert view.reason == "done with warnings"
    assert view.warnings == ("never begun (is an `await` missing?): ctx.step of second, ctx.sleep of sleep",)


async def test_nothing_that_is_kept_can_be_called_inside_a_step(app: App, box: Sandbox) -> None:
    @app.job
    async def nest(ctx: Context) -> None:
        async def inside() -> list[str]:
            return [refusal_of(call) for call in calls]

        def in_a_thread() -> list[str]:
            return [refusal_of(call) for call in calls]

        calls = [
            lambda: ctx.step("inner", len, "abc"),
            lambda: ctx.sleep("1h"),
            lambda: ctx.wait_for("event"),
            lambda: ctx.poll("inner", len, "abc"),
            lambda: ctx.approval("inner"),
        ]
        waits = "waits belong to the handler itself: write it before or after that step"
        told = [
            "holds ctx.step, and a step cannot hold another one: write it before or after that step",
            f"holds ctx.sleep, and {waits}",
            f"holds ctx.wait_for, and {waits}",
            f"holds ctx.poll, and {waits}",
            f"holds ctx.approval, and {waits}",
        ]
        assert await ctx.step("x", inside) == [f"step x {line}" for line in told]
        assert await ctx.step("y", in_a_thread) == [f"step y {line}" for line in told]

    await nest.enqueue()
    assert (await box.drain(raising=True)).succeeded == 1


def refusal_of(call: Any) -> str:
    with pytest.raises(StepError) as refused:
        call()
    return str(refused.value)

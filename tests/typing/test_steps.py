"""What type checkers make of steps, written as a user writes them: mypy reads this file, nothing of it is run."""

from __future__ import annotations

from typing import assert_type

from perdure import Context, Retry, SyncContext


async def fetch(url: str, tries: int = 1) -> int:
    return len(url) * tries


def render(pages: int) -> str:
    return f"{pages} pages"


async def handler(ctx: Context, is_optional: bool) -> None:
    """Whether a step may yield None follows from `optional`, be it a word or a variable."""
    assert_type(await ctx.step("a", fetch, "url"), int)
    assert_type(await ctx.step("b", fetch, "url", optional=False), int)
    assert_type(await ctx.step("c", fetch, "url", 2, optional=True), int | None)
    assert_type(await ctx.step("d", fetch, "url", 2, optional=is_optional, timeout="5s"), int | None)
    assert_type(await ctx.step("e", render, 3, optional=is_optional, retry=Retry(attempts=2)), str | None)
    assert_type(await ctx.step("f", render, 3, retry=Retry(attempts=2)), str)
    assert_type(ctx.step_error("c"), str | None)
    ctx.warn("no pictures")
    await ctx.step("g", render, "three")  # type: ignore[arg-type] # that is the point
    await ctx.step("h", render, "three", optional=is_optional)  # type: ignore[call-arg, arg-type] # as above
    await ctx.step("i", render, 3, optional="yes")  # type: ignore[call-arg, arg-type] # as above


def sync_handler(ctx: SyncContext, is_optional: bool) -> None:
    """The same without `await`."""
    assert_type(ctx.step("a", fetch, "url"), int)
    assert_type(ctx.step("b", render, 3, optional=False), str)
    assert_type(ctx.step("c", render, 3, optional=True), str | None)
    assert_type(ctx.step("d", fetch, "url", optional=is_optional), int | None)
    assert_type(ctx.step_error("c"), str | None)
    ctx.warn("no pictures")

"""Jobs that take steps, wait and log in processes of their own."""

from __future__ import annotations

import os
from pathlib import Path

from perdure import App, Context, DuplicateChildError, Retry, SyncContext, Unique

app = App("sqlite:///unused.db", retry=Retry(attempts=1))


def tally(file: str, word: str) -> int:
    """Write a line, and tell how many there are."""
    path = Path(file)
    with path.open("a") as out:
        out.write(f"{word}\n")
    return len(path.read_text().splitlines())


async def tally_later(file: str, word: str) -> int:
    return tally(file, word)


def refuse() -> str:
    raise OSError("no camera")


@app.job
async def double(number: int) -> int:
    return number * 2


@app.job(isolate=True)
def plain(ctx: SyncContext, file: str) -> list[object]:
    """Everything that is kept, from a sync handler."""
    ctx.progress(1, 2, "half way")
    ctx.log.info("hello from a process", pages=3)
    first = ctx.step("first", tally, file, "first")
    later = ctx.step("later", tally_later, file, "later")
    shot = ctx.step("shot", refuse, optional=True)
    ctx.sleep("1h")
    doubled = ctx.gather([double.call(1), double.call(2)])
    paid = ctx.wait_for("paid")
    return [first, later, shot, doubled, paid, os.getpid() == os.getppid()]


@app.job(isolate=True)
async def eventual(ctx: Context, file: str) -> list[object]:
    """The same, from an async one."""
    ctx.progress(1, 2, "half way")
    ctx.log.info("hello from a process", pages=3)
    first = await ctx.step("first", tally, file, "first")
    later = await ctx.step("later", tally_later, file, "later")
    shot = await ctx.step("shot", refuse, optional=True)
    await ctx.sleep("1h")
    doubled = await ctx.gather([double.call(1), double.call(2)])
    paid = await ctx.wait_for("paid")
    return [first, later, shot, doubled, paid, os.getpid() == os.getppid()]


@app.job(isolate=True)
def odd(ctx: SyncContext) -> object:
    """A step whose result cannot be kept."""
    return ctx.step("odd", object)


@app.job(isolate=True)
def leaves_children(ctx: SyncContext) -> str:
    """A parent that does not wait for its child."""
    ctx.spawn([double.using(delay="1h").call(1)])
    return "gone"


@app.job(isolate=True)
def talks_and_dies(ctx: SyncContext) -> None:
    """Says how far it is, and ends without another word."""
    ctx.step("kept", len, "abc")
    os._exit(3)


@app.job(isolate=True)
def warned(ctx: SyncContext) -> str | None:
    """Say something besides the result."""
    ctx.warn("said")
    ctx.step("shot", _gone, optional=True)
    return ctx.step_error("shot")


def _gone() -> None:
    raise OSError("gone")


@app.job(unique=Unique(by=(), on_conflict="reject"))
def only_one() -> None:
    """Hold a key."""


@app.job(isolate=True)
def asks_for_only_one(ctx: SyncContext) -> tuple[str, int, str]:
    """Learn who holds it."""
    try:
        ctx.spawn([only_one.call()])
    except DuplicateChildError as error:
        return error.family, error.number, error.job_id
    return "", 0, ""

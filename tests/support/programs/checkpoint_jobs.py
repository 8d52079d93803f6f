"""Jobs of all three modes that keep how far they have come; what they do is written to a folder, line by line."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Final

from tests.support.waiting import until

from perdure import App, Backoff, ConflictError, Context, Release, Retry

app = App("sqlite:///unused.db", retry=Retry(attempts=3, backoff=Backoff.none()))
STEPS: Final = 4
STUMBLES: Final = 2
MODES: Final = ("async", "sync", "isolated")


def _note(folder: str, what: object) -> None:
    with (Path(folder) / "notes").open("a", encoding="utf-8") as notes:
        notes.write(f"{what}\n")


@app.job(name="async")
async def walk(ctx: Context, folder: str, manner: str) -> int:
    """Walk on from the last checkpoint."""
    for step in range(ctx.cursor or 0, STEPS):
        _note(folder, step)
        await ctx.checkpoint(step + 1)
        assert ctx.cursor == step + 1
        if manner == "stumble" and ctx.failures == step < STUMBLES:
            raise RuntimeError("as ordered")
        if manner == "leave" and await ctx.wait_closing("30s"):
            raise Release
        if manner == "be robbed":
            _note(folder, "waiting")
            await until((Path(folder) / "robbed").exists)
            try:
                await ctx.checkpoint(99)
            except ConflictError as error:
                _note(folder, error)
                raise
    return STEPS


def walk_in_steps(ctx: Context, folder: str, manner: str) -> int:
    """The same, blocking."""
    for step in range(ctx.cursor or 0, STEPS):
        _note(folder, step)
        ctx.checkpoint(step + 1)
        assert ctx.cursor == step + 1
        if manner == "stumble" and ctx.failures == step < STUMBLES:
            raise RuntimeError("as ordered")
        if manner == "leave" and ctx.wait_closing("30s"):
            raise Release
        if manner == "be robbed":
            _note(folder, "waiting")
            while not (Path(folder) / "robbed").exists():
                time.sleep(0.01)
            try:
                ctx.checkpoint(99)
            except BaseException as error:
                _note(folder, str(error) or type(error).__name__)
                raise
    return STEPS


app.job(name="sync")(walk_in_steps)
app.job(name="isolated", isolate=True)(walk_in_steps)

"""The app of the rolling deploy: jobs of all modes that walk step by step, and write to the ledger what they do.

`begin JOB STEP` when a step begins, `kept JOB STEP` when the checkpoint behind it has returned, `end JOB` at the end.
"""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path

from tests.crash.harness.ledger import Ledger

from perdure import App, Context, Release, WorkerSettings

app = App(
    worker=WorkerSettings(
        concurrency=30, threads=6, isolated=2, poll="200ms", heartbeat="1s", stop_timeout="1500ms", grace="1s"
    )
)
ledger = Ledger(Path(os.environ["DEPLOY_LEDGER"]))


@app.job
async def stroll(ctx: Context, steps: int, pause: float) -> int:
    """Walk until told to stop."""
    for step in range(ctx.cursor or 0, steps):
        ledger.note("begin", ctx.job_id, step)
        await asyncio.sleep(pause)
        await ctx.checkpoint(step + 1)
        ledger.note("kept", ctx.job_id, step)
    ledger.note("end", ctx.job_id)
    return steps


@app.job
async def march(ctx: Context, steps: int, pause: float) -> int:
    """Walk, and go home as soon as the worker is closing."""
    for step in range(ctx.cursor or 0, steps):
        ledger.note("begin", ctx.job_id, step)
        await asyncio.sleep(pause)
        await ctx.checkpoint(step + 1)
        ledger.note("kept", ctx.job_id, step)
        if ctx.closing:
            raise Release
    ledger.note("end", ctx.job_id)
    return steps


def toil(ctx: Context, steps: int, pause: float) -> int:
    """Walk in a thread, or in a process of its own."""
    for step in range(ctx.cursor or 0, steps):
        ledger.note("begin", ctx.job_id, step)
        time.sleep(pause)
        ctx.checkpoint(step + 1)
        ledger.note("kept", ctx.job_id, step)
    ledger.note("end", ctx.job_id)
    return steps


app.job(toil)
app.job(name="toil_apart", isolate=True)(toil)

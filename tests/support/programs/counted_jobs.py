"""An isolated job that enqueues others in its own process, for the tests of metrics."""

from __future__ import annotations

import os

from perdure import App, Context

app = App(os.environ["PERDURE_TEST_URL"])


@app.job(queue="leaves")
async def leaf(number: int) -> int:
    return number


@app.job(isolate=True)
async def apart(ctx: Context) -> int:
    await leaf.enqueue(1)
    await app.enqueue_many(leaf.call(number) for number in (2, 3))
    return sum(await ctx.gather([leaf.call(4)]))


@app.job(isolate=True)
def apart_blocking() -> None:
    leaf.enqueue_sync(5)

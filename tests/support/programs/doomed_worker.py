"""A worker that dies under its job: `python -m tests.support.programs.doomed_worker URL MODE`."""

from __future__ import annotations

import asyncio
import os
import signal
import sys

from tests.support.programs.effects import QUICK, insertion, write

from perdure import App, Context, Job


def doomed(app: App, url: str, mode: str, *, dies: bool) -> Job[[], None]:
    """A job that writes a row and then, if it must, takes its process with it."""

    def die() -> None:
        if dies:
            os.kill(os.getpid(), signal.SIGKILL)

    async def in_task(ctx: Context) -> None:
        async with ctx.transaction() as connection:
            await write(connection, insertion(url, f"crashes before: {ctx.attempt - 1}"))
        die()

    def in_thread(ctx: Context) -> None:
        with ctx.transaction() as connection:
            connection.execute(insertion(url, f"crashes before: {ctx.attempt - 1}"))
        die()

    declared: Job[[], None] = app.job(name="doomed")(in_task if mode == "task" else in_thread)
    return declared


async def main(url: str, mode: str) -> None:
    """Work until death."""
    async with App(url) as app:
        doomed(app, url, mode, dies=True)
        await (await app.worker(QUICK)).run()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))

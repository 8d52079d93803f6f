"""The jobs of the crash tests. Each writes to the ledger when it starts and when it ends, and returns its token."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from tests.crash.harness.ledger import Ledger

from perdure import App, Backoff, Context, Retry, Unique

Proof = dict[str, int]
_STORM: Final = ("nap", "nap", "toil", "insist", "single", "flaky")
_LONG_ONES: Final = 0.15


def build_app(url: str, ledger: Ledger, me: str) -> App:
    """An app whose handlers keep the ledger; `me` is the name of the process."""
    app = App(url, retry=Retry(attempts=9, backoff=Backoff.fixed("50ms")), enqueue_patience="20s")
    handlers = Handlers(ledger, me)
    for handler in (handlers.nap, handlers.toil, handlers.insist, handlers.flaky, handlers.hold, handlers.poison):
        app.job(handler)
    app.job(unique=Unique(by="number"))(handlers.single)
    return app


class Handlers:
    """What the jobs do."""

    def __init__(self, ledger: Ledger, me: str) -> None:
        self._ledger = ledger
        self._me = me

    async def nap(self, ctx: Context, seconds: float) -> Proof:
        """Sleep."""
        self._note("start", ctx)
        await asyncio.sleep(seconds)
        return self._note("end", ctx)

    def toil(self, ctx: Context, seconds: float) -> Proof:
        """Sleep in a thread."""
        self._note("start", ctx)
        time.sleep(seconds)
        return self._note("end", ctx)

    async def insist(self, ctx: Context, seconds: float) -> Proof:
        """Sleep, and do not listen when told to stop: the result is written late, as by a process that slept."""
        self._note("start", ctx)
        until = time.monotonic() + seconds
        await _deaf_until(lambda: time.monotonic() >= until)
        return self._note("end", ctx)

    async def single(self, ctx: Context, seconds: float, number: int) -> Proof:
        """Sleep, under a unique key: the result takes the long way into the store."""
        del number
        return await self.nap(ctx, seconds)

    async def flaky(self, ctx: Context, seconds: float) -> Proof:
        """Sleep, and fail the first time."""
        self._note("start", ctx)
        await asyncio.sleep(seconds)
        if ctx.failures == 0:
            raise ConnectionError("as ordered")
        return self._note("end", ctx)

    async def hold(self, ctx: Context, folder: str) -> Proof:
        """Run until the test opens the gate of this process, whatever else it is told."""
        self._note("start", ctx)
        await _deaf_until((Path(folder) / f"release-{self._me}").exists)
        return self._note("end", ctx)

    async def poison(self, ctx: Context) -> Proof:
        """Kill the worker."""
        self._note("start", ctx)
        os.kill(os.getpid(), signal.SIGKILL)
        return self._note("end", ctx)

    def _note(self, what: str, ctx: Context) -> Proof:
        self._ledger.note(what, ctx.job_id, ctx.token, ctx.attempt, os.getpid(), time.monotonic_ns())
        return {"token": ctx.token}


async def _deaf_until(condition: Callable[[], bool]) -> None:
    while not condition():
        try:
            await asyncio.sleep(0.01)
        except asyncio.CancelledError:
            continue


def a_call(number: int) -> tuple[str, dict[str, float | int]]:
    """Which job the n-th of a storm is: always the same one, so that it can be enqueued again after a crash."""
    chance = random.Random(number)  # noqa: S311 - the same in every process
    kind = chance.choice(_STORM)
    seconds = chance.uniform(0.3, 1.0) if chance.random() < _LONG_ONES else chance.uniform(0.0, 0.05)
    return kind, {"seconds": seconds} | ({"number": number} if kind == "single" else {})

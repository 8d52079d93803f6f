"""The periodic functions of an app (`@app.every`) in a sandbox: called in a drain, at their times, by the test's clock.

As in a worker, a call never overlaps itself, an error ends nothing, and a call that exceeds its limit is told to stop.
The test's clock also measures how long a call takes: a function that travels skips the calls due on its way.
Times have no jitter. The limit also applies by the machine's clock, so that a hanging call ends.
"""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta

from perdure.app.app import App
from perdure.clock import ManualClock
from perdure.events import LoopFailed, LoopOverran, LoopSkipped
from perdure.lifecycle.loops.tick import GRACE_SECONDS
from perdure.worker.periodic import Periodic, PeriodicLoop


class SandboxPeriodic:
    """When each function is due, and the calls that do not end."""

    def __init__(self, app: App, clock: ManualClock) -> None:
        self._app = app
        self._clock = clock
        self._due: dict[str, datetime] = {}
        self._stuck: dict[str, tuple[asyncio.Task[None], datetime]] = {}
        self._skipped: dict[str, int] = {}
        self.begin()

    def begin(self) -> None:
        """Count from now for new functions: the first call is due at once, or after an interval."""
        for one in self._app.periodic.values():
            self._due.setdefault(one.name, self._clock.now() + (timedelta(0) if one.at_start else one.every))

    def next_time(self) -> datetime | None:
        """When the next call is due."""
        return min(self._due.values(), default=None)

    async def call_due(self) -> Exception | None:
        """Call each due function once, even if it was due several times; returns the first error; reports all."""
        self.begin()
        errors: list[Exception] = []
        for one in sorted(self._app.periodic.values(), key=lambda one: self._due[one.name]):
            now = self._clock.now()
            if self._due[one.name] > now:
                continue
            self._pass(one, now)
            if not self._is_stuck(one, now):
                errors += await self._call(one, now)
        return errors[0] if errors else None

    async def _call(self, one: Periodic, began: datetime) -> list[Exception]:
        task = asyncio.ensure_future(PeriodicLoop(one, self._app.events).tick())
        await asyncio.wait({task}, timeout=one.limit.total_seconds())
        overran = not task.done() or self._clock.now() - began > one.limit
        if not task.done():
            task.cancel()
            await asyncio.wait({task}, timeout=GRACE_SECONDS)
        if not task.done():
            self._stuck[one.name] = task, began
        if overran:
            self._app.events.emit(LoopOverran(one.name, one.limit.total_seconds(), stopped=task.done()))
        if skipped := self._pass(one, self._clock.now()):
            self._skip(one, began, skipped)
        if not task.done() or task.cancelled() or (error := task.exception()) is None or overran:
            return []
        self._app.events.emit(LoopFailed(one.name, f"{type(error).__name__}: {error}"))
        if isinstance(error, Exception):
            return [error]
        raise error

    def _is_stuck(self, one: Periodic, now: datetime) -> bool:
        """Whether the previous call has not ended; then this one is skipped."""
        task, began = self._stuck.get(one.name, (None, now))
        if task is None or task.done():
            self._stuck.pop(one.name, None)
            return False
        self._skip(one, began, 1)
        return True

    def _skip(self, one: Periodic, began: datetime, calls: int) -> None:
        self._skipped[one.name] = self._skipped.get(one.name, 0) + calls
        running_for = (self._clock.now() - began).total_seconds()
        self._app.events.emit(LoopSkipped(one.name, running_for, self._skipped[one.name]))

    def _pass(self, one: Periodic, until: datetime) -> int:
        """Skip the times up to then; returns how many there were."""
        passed = max((until - self._due[one.name]) // one.every + 1, 0)
        self._due[one.name] += passed * one.every
        return passed

"""Schedules in a sandbox: registered as a worker does, and fired once the test has moved the clock."""

from __future__ import annotations

import random
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from perdure.app.app import App
from perdure.clock import Clock
from perdure.domain.jobs.job import Intake, Receipt
from perdure.domain.schedule import Advance, Fire, Origin, Schedule
from perdure.policy.schedules.timetable import timetable
from perdure.storage.port import Store
from perdure.storage.schedules import Timed
from perdure.testing.intake import Note
from perdure.upkeep.scheduler import Scheduler


class SandboxCalendar:
    """The schedules that the app declares, and those made in the sandbox."""

    def __init__(self, app: App, store: Store, clock: Clock, chance: random.Random) -> None:
        self._app = app
        self._store = store
        self._declared: dict[str, Schedule] = {}
        self._scheduler = Scheduler(store, app.events, clock, self._declared, lambda: None, chance)

    async def declare(self) -> None:
        """Register declared schedules that are new, starting with their next time."""
        fresh = [one for one in self._app.schedules.values() if one.name not in self._declared]
        if fresh:
            now = await self._store.now()
            await self._store.declare_schedules(
                [Timed(one, timetable(one.expression, one.tz).next_after(now)) for one in fresh]
            )
            self._declared |= {one.name: one for one in fresh}

    async def fire(self) -> None:
        """Make the jobs of all due times; times in the past are handled as by a worker that was away."""
        while (await self._scheduler.tick()).more:
            pass

    async def next_time(self) -> datetime | None:
        """The next time of any schedule that is fired here."""
        now = await self._store.now()
        times = [
            view.next_at
            for view in await self._store.schedules()
            if view.next_at is not None and (view.origin is Origin.MADE or view.name in self._declared)
        ]
        return min((time for time in times if time > now), default=None)  # an earlier one cannot be read


class NotedFires:
    """A store that reports the jobs that schedules make, and passes on all other calls."""

    def __init__(self, store: Store, note: Note) -> None:
        self._store = store
        self._note = note

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def fire(self, advances: Sequence[Advance]) -> list[Fire]:
        """Apply these steps, each unless another process has; returns those that were applied."""
        fires = await self._store.fire(advances)
        jobs = {(step.name, firing.nominal_at): firing.job for step in advances for firing in step.firings}
        made = [
            (job, Receipt(fire.job_id, Intake.NEW))
            for fire in fires
            if fire.job_id is not None and (job := jobs[fire.schedule, fire.nominal_at]) is not None
        ]
        self._note([job for job, _ in made], [receipt for _, receipt in made])
        return fires

"""Runs what an app has declared for certain times: schedules, periodic functions, backups."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any
from uuid import uuid4

from perdure.domain.schedule import Schedule
from perdure.lifecycle.loops.loop import Loop
from perdure.policy.schedules.timetable import timetable
from perdure.storage.schedules import Timed
from perdure.upkeep.backups import Backups
from perdure.upkeep.scheduler import Scheduler
from perdure.worker.periodic import Periodic, PeriodicLoop
from perdure.worker.surroundings import Surroundings


class Timekeeping:
    """The loops for these. Schedules made at run time fire even if the app declares none."""

    def __init__(
        self,
        worker: str,
        around: Surroundings,
        *,
        schedules: Sequence[Schedule],
        periodic: Sequence[Periodic],
        on_ready: Callable[[], None],
    ) -> None:
        store, emitter, clock, backup = around.store, around.emitter, around.clock, around.settings.backup
        self._schedules = schedules
        self._store = store
        holder = f"{worker} {uuid4().hex[:8]}"  # names alone are not unique, and a process may have two workers
        declared = frozenset(schedule.name for schedule in schedules)
        scheduler = Scheduler(store, emitter, clock, declared, on_ready, hooks=around.hooks)
        periodical = [PeriodicLoop.of(one, emitter, store, holder, clock) for one in periodic]
        self.loops: list[Loop[Any]] = [scheduler, *periodical]
        if backup is not None:
            self.loops.append(Backups(store, emitter, backup, holder))

    async def declare(self) -> None:
        """Store the declared schedules; raises ConflictError if one made at run time has the same name."""
        if self._schedules:
            now = await self._store.now()
            await self._store.declare_schedules(
                [Timed(one, timetable(one.expression, one.tz).next_after(now)) for one in self._schedules]
            )

    def stop(self) -> None:
        """Start no more ticks; running ones may finish."""
        for loop in self.loops:
            loop.stop()

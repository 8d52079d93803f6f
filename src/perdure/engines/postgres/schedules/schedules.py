"""The register of schedules: written by operators and apps, and its views.

The definition of a schedule is stored as JSON; its version rises when that changes. A pause changes the next time only:
a process that is about to fire the schedule expects another time, and finds it gone.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from perdure.clock import Clock
from perdure.domain.operate.audit import By
from perdure.domain.schedule import Fire, Origin, Schedule, ScheduleView
from perdure.engines.postgres.database.arrays import text_array
from perdure.engines.postgres.database.connections import Pool
from perdure.engines.postgres.database.encoding import moment_text, storable_text
from perdure.engines.postgres.database.naming import Naming
from perdure.engines.postgres.database.rows import Row, fire_of, schedule_of
from perdure.engines.postgres.database.wire import Params, Wire
from perdure.engines.postgres.operate.commands.audit import Audit
from perdure.engines.shared.definitions import definition_text
from perdure.engines.shared.operate.audit_details import schedule_changed
from perdure.policy.schedules.origins import origin_conflict
from perdure.storage.schedules import Timed


class SchedulePart:
    """Enters, changes and shows schedules."""

    def __init__(self, naming: Naming, pool: Pool, clock: Clock | None) -> None:
        self._statements = naming.statements("schedules/schedules.sql")
        self._pool = pool
        self._clock = clock
        self._audit = Audit(naming, clock)

    async def declare_schedules(self, declared: Sequence[Timed]) -> None:
        """Enter the schedules that an app declares, all or none."""
        if not declared:
            return
        by_name = {timed.schedule.name: timed for timed in declared}

        async def work(wire: Wire) -> None:
            rows = await self._enter(wire, list(by_name.values()), Origin.DECLARED)
            made = sorted(by_name.keys() - {schedule_of(row).name for row in rows})
            if made:
                raise origin_conflict(made, Origin.DECLARED)

        await self._pool.transaction(work)

    async def save_schedule(self, timed: Timed, by: By) -> ScheduleView:
        """Make a schedule at run time, or change one that was."""
        name = _checked(timed.schedule).name

        async def work(wire: Wire) -> ScheduleView:
            before = await self._locked(wire, name)
            rows = await self._enter(wire, (timed,), Origin.MADE)
            if not rows:
                raise origin_conflict([name], Origin.MADE)
            after = schedule_of(rows[0])
            await self._audit.write(wire, by, schedule_changed("save", name, before, after))
            return after

        return await self._pool.transaction(work)

    async def pause_schedule(
        self, name: str, by: By, *, until: datetime | None, next_at: datetime | None
    ) -> ScheduleView | None:
        """Pause it until then, or until resumed; None: there is no such schedule."""
        return await self._change("pause", {"name": name, "until": until, "next_at": next_at}, by)

    async def resume_schedule(self, name: str, by: By, next_at: datetime | None) -> ScheduleView | None:
        """Resume it with its next time; one that is not paused does not change."""
        return await self._change("resume", {"name": name, "next_at": next_at}, by)

    async def delete_schedule(self, name: str, by: By) -> bool:
        """Delete a schedule and the record of its times; its jobs stay."""

        async def work(wire: Wire) -> bool:
            before = await self._locked(wire, name)
            if not await wire.fetch(self._statements["delete"], {"name": name}):
                return False
            await wire.fetch(self._statements["forget"], {"name": name})
            await self._audit.write(wire, by, schedule_changed("delete", name, before, None))
            return True

        return await self._pool.transaction(work)

    async def schedule(self, name: str) -> ScheduleView | None:
        """One schedule."""
        rows = await self._pool.rows(self._statements["schedule"], {"name": name})
        return schedule_of(rows[0]) if rows else None

    async def schedules(self) -> list[ScheduleView]:
        """All schedules, by name."""
        return [schedule_of(row) for row in await self._pool.rows(self._statements["schedules"])]

    async def fires(self, name: str, limit: int, before: datetime | None = None) -> list[Fire]:
        """The outcomes of the schedule's nominal times, the latest first."""
        params = {"name": name, "limit": limit, "before": before}
        return [fire_of(row) for row in await self._pool.rows(self._statements["fires"], params)]

    async def last_fires(self) -> list[Fire]:
        """The outcome of the latest nominal time of each schedule."""
        return [fire_of(row) for row in await self._pool.rows(self._statements["last_fires"])]

    async def _enter(self, wire: Wire, entries: Sequence[Timed], origin: Origin) -> list[Row]:
        params: Params = {
            "names": text_array([_checked(timed.schedule).name for timed in entries]),
            "definitions": text_array([definition_text(timed.schedule) for timed in entries]),
            "next_ats": text_array([moment_text(timed.next_at) for timed in entries]),
            "origin": origin.value,
            "now": self._now(),
        }
        return await wire.fetch(self._statements["enter"], params)

    async def _change(self, action: str, params: Params, by: By) -> ScheduleView | None:
        async def work(wire: Wire) -> ScheduleView | None:
            name = str(params["name"])
            before = await self._locked(wire, name)
            rows = await wire.fetch(self._statements[action], {**params, "now": self._now()})
            if not rows:
                return before
            after = schedule_of(rows[0])
            await self._audit.write(wire, by, schedule_changed(action, name, before, after))
            return after

        return await self._pool.transaction(work)

    async def _locked(self, wire: Wire, name: str) -> ScheduleView | None:
        rows = await wire.fetch(self._statements["lock_schedule"], {"name": name})
        return schedule_of(rows[0]) if rows else None

    def _now(self) -> datetime | None:
        return self._clock.now() if self._clock else None


def _checked(schedule: Schedule) -> Schedule:
    """Refuse, by the name of its field, text that no job can have."""
    for field in ("name", "kind", "queue", "args"):
        storable_text(field, getattr(schedule, field))
    return schedule

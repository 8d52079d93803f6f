"""The register of schedules: what operators and apps enter there, and what can be seen of it.

What a schedule is, is kept as JSON; its version rises when that changes. A pause changes the next time only: whoever is
about to fire the schedule expects another one, and finds it gone.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from perdure.clock import Clock
from perdure.domain.schedule import Fire, Origin, Schedule, ScheduleView
from perdure.engines.postgres.database.arrays import text_array
from perdure.engines.postgres.database.connections import Pool
from perdure.engines.postgres.database.encoding import moment_text, storable_text
from perdure.engines.postgres.database.naming import Naming
from perdure.engines.postgres.database.rows import Row, fire_of, schedule_of
from perdure.engines.postgres.database.wire import Params, Wire
from perdure.engines.shared.definitions import definition_text
from perdure.errors import ConflictError
from perdure.storage.schedules import Timed


class SchedulePart:
    """Enters, changes and shows schedules."""

    def __init__(self, naming: Naming, pool: Pool, clock: Clock | None) -> None:
        self._statements = naming.statements("schedules/schedules.sql")
        self._pool = pool
        self._clock = clock

    async def declare_schedules(self, declared: Sequence[Timed]) -> None:
        """Enter the schedules that an app declares, all or none."""
        if not declared:
            return
        by_name = {timed.schedule.name: timed for timed in declared}

        async def work(wire: Wire) -> None:
            rows = await self._enter(wire, list(by_name.values()), Origin.DECLARED)
            made = sorted(by_name.keys() - {schedule_of(row).name for row in rows})
            if made:
                raise ConflictError(
                    f"schedule {', '.join(map(repr, made))} was made at run time: delete that one, or declare this one "
                    "under another name"
                )

        await self._pool.transaction(work)

    async def save_schedule(self, timed: Timed, actor: str) -> ScheduleView:
        """Make a schedule at run time, or change one that was."""
        name = timed.schedule.name

        async def work(wire: Wire) -> ScheduleView:
            rows = await self._enter(wire, (timed,), Origin.MADE)
            if not rows:
                raise ConflictError(f"schedule {name!r} is declared in code: change it there, or choose another name")
            await self._note(wire, "schedule.save", name, actor)
            return schedule_of(rows[0])

        return await self._pool.transaction(work)

    async def pause_schedule(
        self, name: str, actor: str, *, until: datetime | None, next_at: datetime | None
    ) -> ScheduleView | None:
        """Let its times pass until then, or until resumed; None: there is no such schedule."""
        return await self._change("pause", {"name": name, "until": until, "next_at": next_at}, actor)

    async def resume_schedule(self, name: str, actor: str, next_at: datetime | None) -> ScheduleView | None:
        """Let it go on from its next time; one that is not paused stays as it is."""
        return await self._change("resume", {"name": name, "next_at": next_at}, actor)

    async def delete_schedule(self, name: str, actor: str) -> bool:
        """Forget a schedule and the record of its times; its jobs stay."""

        async def work(wire: Wire) -> bool:
            if not await wire.fetch(self._statements["delete"], {"name": name}):
                return False
            await wire.fetch(self._statements["forget"], {"name": name})
            await self._note(wire, "schedule.delete", name, actor)
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
        """What became of the schedule's nominal times, the latest first."""
        params = {"name": name, "limit": limit, "before": before}
        return [fire_of(row) for row in await self._pool.rows(self._statements["fires"], params)]

    async def last_fires(self) -> list[Fire]:
        """What became of the latest nominal time of each schedule."""
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

    async def _change(self, name: str, params: Params, actor: str) -> ScheduleView | None:
        async def work(wire: Wire) -> ScheduleView | None:
            rows = await wire.fetch(self._statements[name], {**params, "now": self._now()})
            if rows:
                await self._note(wire, f"schedule.{name}", str(params["name"]), actor, params.get("until"))
            else:
                rows = await wire.fetch(self._statements["schedule"], params)
            return schedule_of(rows[0]) if rows else None

        return await self._pool.transaction(work)

    async def _note(self, wire: Wire, action: str, name: str, actor: str, until: object = None) -> None:
        params = {"action": action, "name": name, "actor": actor, "until": until, "now": self._now()}
        await wire.fetch(self._statements["note"], params)

    def _now(self) -> datetime | None:
        return self._clock.now() if self._clock else None


def _checked(schedule: Schedule) -> Schedule:
    """Refuse, by the name of its field, text of which no job can be made."""
    for field in ("name", "kind", "queue", "args"):
        storable_text(field, getattr(schedule, field))
    return schedule

"""The calendar: schedules as operators see and change them.

Times follow the database's clock. A manual run is recorded like any nominal time, with its cause, and runs regardless
of the schedule's other jobs.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from perdure.domain.operate.audit import By
from perdure.domain.schedule import Advance, Cause, Fire, Firing, Schedule, ScheduleView
from perdure.errors import ArgumentError, ConflictError, NotFoundError
from perdure.operate.audit_trail import checked_why
from perdure.operate.masking import shown_schedule
from perdure.policy.schedules.nominal import job_of
from perdure.policy.schedules.timetable import Timetable, timetable
from perdure.storage.port import Store
from perdure.storage.schedules import Timed

BACKFILL_LIMIT_RUNS: Final = 10_000
_TIMES_PER_CALL: Final = 500
_TIMES_SHOWN: Final = 5
_INSTANT: Final = timedelta(microseconds=1)
_EARLIEST: Final = datetime(1970, 1, 1, tzinfo=UTC)


class ScheduleDetail(Struct, frozen=True, kw_only=True):
    """One schedule with its next times and the outcomes of past ones, the latest first.

    `unreadable` says why its expression or zone cannot be read, if so: then there are no next times.
    """

    view: ScheduleView
    upcoming: tuple[datetime, ...]
    fires: tuple[Fire, ...]
    unreadable: str | None = None


class Calendar:
    """Views of the schedules of an open store, and commands recorded in the audit trail under `by`."""

    def __init__(self, store: Store, by: By) -> None:
        self._store = store
        self._by = by
        self._random = random.Random()  # noqa: S311 - jitter hides nothing

    async def schedules(self) -> list[ScheduleView]:
        """All schedules, by name."""
        return [shown_schedule(view) for view in await self._store.schedules()]

    async def details(self) -> list[ScheduleDetail]:
        """All schedules by name, each with its next time and its last one, in two queries."""
        last = {fire.schedule: fire for fire in await self._store.last_fires()}
        return [
            _detail(view, (last[view.name],) if view.name in last else (), 1) for view in await self._store.schedules()
        ]

    async def schedule(self, name: str, *, shown: int = _TIMES_SHOWN) -> ScheduleDetail:
        """One schedule, with this many next times and as many past ones; raises NotFoundError."""
        view = await self._find(name)
        return _detail(view, tuple(await self._store.fires(name, shown)), shown)

    async def save(self, schedule: Schedule, *, why: str | None = None) -> ScheduleView:
        """Create a schedule, or replace one made at run time; one declared in code raises ConflictError."""
        next_at = _times(schedule).next_after(await self._store.now())
        return shown_schedule(await self._store.save_schedule(Timed(schedule, next_at), self._because(why)))

    async def pause(self, name: str, *, until: datetime | None = None, why: str | None = None) -> ScheduleView:
        """Pause it: until then, or until it is resumed."""
        view = await self._find(name)
        next_at = None
        if until is not None:
            now = await self._store.now()
            if until.tzinfo is None or until <= now:
                raise ArgumentError("until", f"must be a future time, with its zone, got {until.isoformat()}")
            next_at = _times(view.schedule).next_after(until - _INSTANT)
        paused = await self._store.pause_schedule(name, self._because(why), until=until, next_at=next_at)
        return shown_schedule(_found(name, paused))

    async def resume(self, name: str, *, why: str | None = None) -> ScheduleView:
        """Resume it with its next time; times that passed meanwhile are skipped.

        Raises NotFoundError, and ConflictError if it is not paused.
        """
        view = await self._find(name)
        if view.paused_at is None:
            raise ConflictError(f"schedule {name!r} is not paused")
        next_at = _times(view.schedule).next_after(await self._store.now())
        return shown_schedule(_found(name, await self._store.resume_schedule(name, self._because(why), next_at)))

    async def delete(self, name: str, *, why: str | None = None) -> None:
        """Delete a schedule; one declared in code comes back with the next worker that declares it."""
        if not await self._store.delete_schedule(name, self._because(why)):
            raise _missing(name)

    async def trigger(self, name: str, *, why: str | None = None) -> Fire:
        """Enqueue its job now, in addition to its regular times."""
        view = await self._find(name)
        fires = await self._fire(view, [await self._store.now()], Cause.HAND, self._because(why))
        if not fires:
            raise NotFoundError(f"schedule {name!r} was triggered or deleted at the same moment: try again")
        return fires[0]

    async def backfill(self, name: str, start: datetime, end: datetime, *, why: str | None = None) -> list[Fire]:
        """Enqueue the jobs of its nominal times from `start` up to but not including `end` that have none yet."""
        nominal = await self.nominal_times(name, start, end)
        view = await self._find(name)
        fires: list[Fire] = []
        for first in range(0, len(nominal), _TIMES_PER_CALL):
            fires += await self._fire(
                view, nominal[first : first + _TIMES_PER_CALL], Cause.BACKFILL, self._because(why)
            )
        return fires

    async def nominal_times(self, name: str, start: datetime, end: datetime) -> list[datetime]:
        """The times that a backfill of this range would handle; those already handled are skipped."""
        if start.tzinfo is None or end.tzinfo is None:
            raise ArgumentError("start", "and end need a time zone; use datetime(..., tzinfo=UTC)")
        if start < _EARLIEST:
            raise ArgumentError("start", f"must be in 1970 or later, got {start.isoformat()}")
        if start >= end:
            raise ArgumentError("end", f"must be later than the start, got {start.isoformat()} to {end.isoformat()}")
        if end > await self._store.now():
            raise ArgumentError("end", "must not lie in the future: those times come by themselves")
        view = await self._find(name)
        nominal = list(islice(_times(view.schedule).between(start, end), BACKFILL_LIMIT_RUNS + 1))
        if len(nominal) > BACKFILL_LIMIT_RUNS:
            raise ArgumentError(
                "start", f"to end holds more than {BACKFILL_LIMIT_RUNS:,} times of the schedule: choose a shorter range"
            )
        return nominal

    async def _fire(self, view: ScheduleView, nominal: Iterable[datetime], cause: Cause, by: By) -> list[Fire]:
        firings = tuple(
            Firing(nominal_at=time, job=job_of(view.schedule, time, self._random, cause), cause=cause, regardless=True)
            for time in nominal
        )
        step = Advance(
            name=view.name,
            version=view.version,
            overlap=view.schedule.overlap,
            expected=None,
            firings=firings,
            by=by,
        )
        fires = await self._store.fire([step])
        self._store.ring({view.schedule.queue})
        return fires

    def _because(self, why: str | None) -> By:
        return replace(self._by, why=checked_why(why))

    async def _find(self, name: str) -> ScheduleView:
        return _found(name, await self._store.schedule(name))


def _detail(view: ScheduleView, fires: tuple[Fire, ...], shown: int) -> ScheduleDetail:
    view = shown_schedule(view)
    try:
        times = _times(view.schedule)
    except ArgumentError as error:
        return ScheduleDetail(view=view, upcoming=(), fires=fires, unreadable=str(error))
    return ScheduleDetail(view=view, upcoming=tuple(islice(_from(view.next_at, times), shown)), fires=fires)


def _times(schedule: Schedule) -> Timetable:
    return timetable(schedule.expression, schedule.tz)


def _from(first: datetime | None, times: Timetable) -> Iterable[datetime]:
    while first is not None:
        yield first
        first = times.next_after(first)


def _found(name: str, view: ScheduleView | None) -> ScheduleView:
    if view is None:
        raise _missing(name)
    return view


def _missing(name: str) -> NotFoundError:
    return NotFoundError(f"there is no schedule {name!r}")

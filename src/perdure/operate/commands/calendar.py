"""The calendar: schedules as operators see and change them.

Times are told by the database's clock. What an operator asks for by hand is recorded like any nominal time, with its
cause, and runs whatever the schedule's other jobs are doing.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from datetime import datetime, timedelta
from itertools import islice
from typing import Final

from msgspec import Struct

from perdure.domain.schedule import Advance, Cause, Fire, Firing, Schedule, ScheduleView
from perdure.errors import ArgumentError, ConflictError, NotFoundError
from perdure.policy.schedules.nominal import job_of
from perdure.policy.schedules.timetable import Timetable, timetable
from perdure.storage.port import Store
from perdure.storage.schedules import Timed

MOST_BACKFILLED: Final = 10_000
_BATCH: Final = 500
_SHOWN: Final = 5
_INSTANT: Final = timedelta(microseconds=1)


class ScheduleDetail(Struct, frozen=True, kw_only=True):
    """One schedule with the times to come and what became of those that have passed, the latest first.

    `unreadable` says why its expression or zone cannot be read, if that is so: then no time is to come.
    """

    view: ScheduleView
    upcoming: tuple[datetime, ...]
    fires: tuple[Fire, ...]
    unreadable: str | None = None


class Calendar:
    """Views of the schedules of an open store, and commands recorded under the name of `actor`."""

    def __init__(self, store: Store, actor: str) -> None:
        self._store = store
        self._actor = actor
        self._random = random.Random()  # noqa: S311 - jitter hides nothing

    async def schedules(self) -> list[ScheduleView]:
        """All schedules, by name."""
        return await self._store.schedules()

    async def details(self) -> list[ScheduleDetail]:
        """All schedules by name, each with its next time and its last one: however many there are, in two questions."""
        last = {fire.schedule: fire for fire in await self._store.last_fires()}
        return [
            _detail(view, (last[view.name],) if view.name in last else (), 1) for view in await self._store.schedules()
        ]

    async def schedule(self, name: str, *, shown: int = _SHOWN) -> ScheduleDetail:
        """One schedule, with so many times to come and as many that have passed; raises NotFoundError."""
        view = await self._find(name)
        return _detail(view, tuple(await self._store.fires(name, shown)), shown)

    async def save(self, schedule: Schedule) -> ScheduleView:
        """Make a schedule, or change one that was made here; one declared in code raises ConflictError."""
        next_at = _times(schedule).next_after(await self._store.now())
        return await self._store.save_schedule(Timed(schedule, next_at), self._actor)

    async def pause(self, name: str, *, until: datetime | None = None) -> ScheduleView:
        """Let its times pass: until then, or until it is resumed."""
        view = await self._find(name)
        next_at = None
        if until is not None:
            now = await self._store.now()
            if until.tzinfo is None or until <= now:
                raise ArgumentError("until", f"must be a time to come, with its zone, got {until.isoformat()}")
            next_at = _times(view.schedule).next_after(until - _INSTANT)
        return _found(name, await self._store.pause_schedule(name, self._actor, until=until, next_at=next_at))

    async def resume(self, name: str) -> ScheduleView:
        """Let it go on with its next time; those that passed meanwhile are not made up for.

        Raises NotFoundError, and ConflictError if it is not paused.
        """
        view = await self._find(name)
        if view.paused_at is None:
            raise ConflictError(f"schedule {name!r} is not paused")
        next_at = _times(view.schedule).next_after(await self._store.now())
        return _found(name, await self._store.resume_schedule(name, self._actor, next_at))

    async def delete(self, name: str) -> None:
        """Forget a schedule; one declared in code comes back with the next worker that declares it."""
        if not await self._store.delete_schedule(name, self._actor):
            raise _missing(name)

    async def trigger(self, name: str) -> Fire:
        """Make a job of it now, beside its regular times."""
        view = await self._find(name)
        fires = await self._fire(view, [await self._store.now()], Cause.HAND)
        if not fires:
            raise NotFoundError(f"schedule {name!r} was triggered or deleted at this very moment: look again")
        return fires[0]

    async def backfill(self, name: str, start: datetime, end: datetime) -> list[Fire]:
        """Make the jobs of its nominal times from `start` up to but not including `end` that have none yet."""
        nominal = await self.nominal_times(name, start, end)
        view = await self._find(name)
        fires: list[Fire] = []
        for first in range(0, len(nominal), _BATCH):
            fires += await self._fire(view, nominal[first : first + _BATCH], Cause.BACKFILL)
        return fires

    async def nominal_times(self, name: str, start: datetime, end: datetime) -> list[datetime]:
        """The times that a backfill of this range would deal with, unless they were before."""
        if start.tzinfo is None or end.tzinfo is None:
            raise ArgumentError("start", "and end need a time zone; use datetime(..., tzinfo=UTC)")
        if start >= end:
            raise ArgumentError("end", f"must be later than the start, got {start.isoformat()} to {end.isoformat()}")
        if end > await self._store.now():
            raise ArgumentError("end", "must not lie in the future: those times come by themselves")
        view = await self._find(name)
        nominal = list(islice(_times(view.schedule).between(start, end), MOST_BACKFILLED + 1))
        if len(nominal) > MOST_BACKFILLED:
            raise ArgumentError("start", f"to end holds more than {MOST_BACKFILLED:,} nominal times: take less at once")
        return nominal

    async def _fire(self, view: ScheduleView, nominal: Iterable[datetime], cause: Cause) -> list[Fire]:
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
            actor=self._actor,
        )
        fires = await self._store.fire([step])
        self._store.ring({view.schedule.queue})
        return fires

    async def _find(self, name: str) -> ScheduleView:
        return _found(name, await self._store.schedule(name))


def _detail(view: ScheduleView, fires: tuple[Fire, ...], shown: int) -> ScheduleDetail:
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

"""Builders: schedules and their steps in a few words."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

from msgspec.structs import replace
from tests.support.builders.jobs import MINUTE, a_job

from perdure.domain.jobs.job import NewJob, UniqueKey
from perdure.domain.jobs.states import JobState
from perdure.domain.operate.audit import By
from perdure.domain.schedule import Advance, Cause, Fire, Firing, Overlap, Schedule, ScheduleView
from perdure.storage.port import Store
from perdure.storage.schedules import Timed

ONE_AT_A_TIME: Final = frozenset({JobState.RUNNING, JobState.RETRYING, JobState.WAITING})


def a_schedule(name: str = "report", **changes: Any) -> Schedule:
    """A schedule of every minute; change what the test is about."""
    return replace(Schedule(name=name, kind="greet", expression="* * * * *"), **changes)


async def make(store: Store, next_at: datetime | None, **changes: Any) -> ScheduleView:
    """Make a schedule at run time that is due at `next_at`."""
    return await store.save_schedule(Timed(a_schedule(**changes), next_at), By("ops"))


async def stands(store: Store, name: str = "report") -> ScheduleView:
    """Look at a schedule that must be there."""
    view = await store.schedule(name)
    assert view is not None
    return view


def job_for(view: ScheduleView, **changes: Any) -> NewJob:
    """The job of one of its nominal times, as the scheduler makes it."""
    queued = view.schedule.overlap is Overlap.QUEUE
    unique = UniqueKey(f"schedule {view.name}", ONE_AT_A_TIME) if queued else None
    return a_job(kind=view.schedule.kind, queue=view.schedule.queue, unique=unique, **changes)


def step(view: ScheduleView, *, times: int = 1, **changes: Any) -> Advance:
    """The step that deals with the schedule's next nominal time, or with several of them, a minute apart."""
    assert view.next_at is not None
    nominal = [view.next_at + number * MINUTE for number in range(times)]
    taken = Advance(
        name=view.name,
        version=view.version,
        overlap=view.schedule.overlap,
        expected=view.next_at,
        next_at=nominal[-1] + MINUTE if nominal else None,
        firings=tuple(Firing(nominal_at=time, job=job_for(view)) for time in nominal),
    )
    return replace(taken, **changes)


def extra(view: ScheduleView, *firings: Firing) -> Advance:
    """Firings besides the schedule's own times."""
    return Advance(name=view.name, version=view.version, overlap=view.schedule.overlap, expected=None, firings=firings)


def by_hand(view: ScheduleView, nominal_at: datetime, **changes: Any) -> Firing:
    """A nominal time that an operator asks for."""
    return replace(Firing(nominal_at=nominal_at, job=job_for(view), cause=Cause.HAND), **changes)


async def fire_next(store: Store, name: str = "report") -> Fire:
    """Deal with the schedule's next nominal time, which must be ours."""
    [fire] = await store.fire([step(await stands(store, name))])
    return fire

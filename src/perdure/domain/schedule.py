"""Schedules: jobs that the calendar enqueues.

A schedule has *nominal times*, told by its expression and zone. Each nominal time yields at most one job (G6): the
store keeps a record of every nominal time that was dealt with, and a second record of the same one cannot be made.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from enum import StrEnum

from msgspec import Struct

from perdure.domain.jobs.ids import JobId
from perdure.domain.jobs.job import DEFAULT_CRASH_LIMIT, DEFAULT_PRIORITY, DEFAULT_QUEUE, NewJob


class Missed(StrEnum):
    """What becomes of nominal times at which nobody was there."""

    SKIP = "skip"  # they are let go
    ONCE = "once"  # one job stands for all of them
    ALL = "all"  # each gets its job


class Overlap(StrEnum):
    """What becomes of a nominal time while the job of an earlier one is not finished."""

    SKIP = "skip"  # it is let go
    QUEUE = "queue"  # its job runs after the other one
    CANCEL = "cancel"  # the other one is called off
    ALLOW = "allow"  # they run side by side


class Origin(StrEnum):
    """Where a schedule comes from."""

    DECLARED = "declared"  # in the app's code; only processes that declare it fire it
    MADE = "made"  # at run time; any process fires it


class Fate(StrEnum):
    """What became of one nominal time."""

    FIRED = "fired"
    MISSED = "missed"  # nobody was there in time
    OVERLAPPED = "overlapped"  # an earlier job was not finished


class Cause(StrEnum):
    """Who asked for a nominal time."""

    TIME = "time"
    HAND = "hand"  # triggered by an operator
    BACKFILL = "backfill"  # asked for after the fact

    @property
    def action(self) -> str:
        """What the audit trail calls it."""
        return "schedule.trigger" if self is Cause.HAND else f"schedule.{self}"


class Schedule(Struct, frozen=True, kw_only=True):
    """What a schedule is. `expression` is cron with five or six fields, `@daily` and its kin, or `@every 90s`."""

    name: str
    kind: str
    expression: str
    tz: str = "UTC"
    args: str = "{}"
    missed: Missed = Missed.SKIP
    within: timedelta = timedelta(minutes=1)  # how late a nominal time may still be dealt with
    overlap: Overlap = Overlap.SKIP
    jitter: timedelta = timedelta(0)  # its job runs up to so much later
    queue: str = DEFAULT_QUEUE
    priority: int = DEFAULT_PRIORITY
    max_attempts: int | None = None
    crash_limit: int = DEFAULT_CRASH_LIMIT
    settings: str | None = None  # JSON: those of every job that it makes
    tags: tuple[str, ...] = ()  # beside the one that names the schedule
    meta: str | None = None  # JSON; beside it each job is told its schedule and its nominal time
    fair_key: str | None = None


class ScheduleView(Struct, frozen=True, kw_only=True):
    """A schedule as it stands. `next_at` None: it is paused until somebody resumes it, or has no time left to come."""

    schedule: Schedule
    origin: Origin
    version: int  # rises with every change of what the schedule is
    next_at: datetime | None
    last_at: datetime | None  # the latest nominal time dealt with
    last_job_id: JobId | None
    paused_at: datetime | None
    paused_until: datetime | None
    created_at: datetime
    changed_at: datetime
    declared_at: datetime | None  # when a process last declared it

    @property
    def name(self) -> str:
        """The schedule's name."""
        return self.schedule.name


class Firing(Struct, frozen=True, kw_only=True):
    """One nominal time to be dealt with: with a job if it is to run, without one if it was missed.

    `regardless`: the job is made whatever earlier jobs of the schedule are doing.
    """

    nominal_at: datetime
    job: NewJob | None
    cause: Cause = Cause.TIME
    regardless: bool = False


class Advance(Struct, frozen=True, kw_only=True):
    """A step of one schedule: these firings, and the next nominal time after them.

    It is taken only if the schedule still stands at `expected` (its `next_at`) and `version`, so that of any number of
    processes one takes it. `expected` None: the firings are extra, and the schedule's own times stay as they are.
    `actor`: who asked for their jobs, for the audit trail; None: the clock did.
    """

    name: str
    version: int
    overlap: Overlap
    expected: datetime | None
    next_at: datetime | None = None
    firings: tuple[Firing, ...] = ()
    actor: str | None = None


class Fire(Struct, frozen=True, kw_only=True):
    """The record of one nominal time: what became of it."""

    schedule: str
    nominal_at: datetime
    fate: Fate
    cause: Cause
    at: datetime  # when it was dealt with
    job_id: JobId | None
    queue: str | None = None  # of the job


class DueSchedules(Struct, frozen=True):
    """Schedules whose time has come, the most overdue first, the store's time, and how long until the next one."""

    due: tuple[ScheduleView, ...]
    now: datetime
    next_in: timedelta | None

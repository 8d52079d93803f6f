"""Schedules: jobs that are enqueued at set times.

A schedule has *nominal times*, given by its expression and zone. Each nominal time yields at most one job (G6): the
store records every handled nominal time, and accepts only one record for each.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from enum import StrEnum

from msgspec import Struct

from perdure.domain.jobs.ids import JobId
from perdure.domain.jobs.job import DEFAULT_CRASH_LIMIT, DEFAULT_PRIORITY, DEFAULT_QUEUE, NewJob
from perdure.domain.operate.audit import By


class Missed(StrEnum):
    """What happens to nominal times at which no process ran."""

    SKIP = "skip"  # they are skipped
    ONCE = "once"  # one job replaces all of them
    ALL = "all"  # each gets its job


class Overlap(StrEnum):
    """What happens to a nominal time while the job of an earlier one is not finished."""

    SKIP = "skip"  # it is skipped
    QUEUE = "queue"  # its job runs after the other one
    CANCEL = "cancel"  # the other one is cancelled
    ALLOW = "allow"  # they run side by side


class Origin(StrEnum):
    """Where a schedule comes from."""

    DECLARED = "declared"  # in the app's code; only processes that declare it fire it
    MADE = "made"  # at run time; any process fires it


class Fate(StrEnum):
    """The outcome of one nominal time."""

    FIRED = "fired"
    MISSED = "missed"  # no process ran in time
    OVERLAPPED = "overlapped"  # an earlier job was not finished


class Cause(StrEnum):
    """What caused a nominal time."""

    TIME = "time"
    HAND = "hand"  # triggered by an operator
    BACKFILL = "backfill"  # backfilled

    @property
    def action(self) -> str:
        """The word for it in the audit trail."""
        return "schedule.trigger" if self is Cause.HAND else f"schedule.{self}"


class Schedule(Struct, frozen=True, kw_only=True):
    """The definition of a schedule. `expression` is cron with 5 or 6 fields, `@daily` and similar, or `@every 90s`."""

    name: str
    kind: str
    expression: str
    tz: str = "UTC"
    args: str = "{}"
    missed: Missed = Missed.SKIP
    within: timedelta = timedelta(minutes=1)  # how late a nominal time may still be handled
    overlap: Overlap = Overlap.SKIP
    jitter: timedelta = timedelta(0)  # its job runs up to this much later
    queue: str = DEFAULT_QUEUE
    priority: int = DEFAULT_PRIORITY
    max_attempts: int | None = None
    crash_limit: int = DEFAULT_CRASH_LIMIT
    settings: str | None = None  # JSON: the arguments of every job that it makes
    tags: tuple[str, ...] = ()  # beside the one that names the schedule
    meta: str | None = None  # JSON; each job's metadata also holds its schedule and its nominal time
    fair_key: str | None = None


class ScheduleView(Struct, frozen=True, kw_only=True):
    """The current state of a schedule. `next_at` None: it is paused until resumed, or has no future time."""

    schedule: Schedule
    origin: Origin
    version: int  # rises with every change of the definition
    next_at: datetime | None
    last_at: datetime | None  # the latest nominal time handled
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
    """One nominal time to handle: with a job if it is to run, without one if it was missed.

    `regardless`: make the job regardless of the schedule's earlier jobs.
    """

    nominal_at: datetime
    job: NewJob | None
    cause: Cause = Cause.TIME
    regardless: bool = False


class Advance(Struct, frozen=True, kw_only=True):
    """A step of one schedule: these firings, and the next nominal time after them.

    It is applied only if the schedule is still at `expected` (its `next_at`) and `version`, so that exactly one process
    applies it. `expected` None: the firings are extra, and the schedule's own times do not change. `by`: who asked for
    their jobs, for the audit trail; None: the schedule itself.
    """

    name: str
    version: int
    overlap: Overlap
    expected: datetime | None
    next_at: datetime | None = None
    firings: tuple[Firing, ...] = ()
    by: By | None = None


class Fire(Struct, frozen=True, kw_only=True):
    """The record of one nominal time and its outcome."""

    schedule: str
    nominal_at: datetime
    fate: Fate
    cause: Cause
    at: datetime  # when it was handled
    job_id: JobId | None
    queue: str | None = None  # of the job


class DueSchedules(Struct, frozen=True):
    """Due schedules, the most overdue first, the store's time, and the time until the next one."""

    due: tuple[ScheduleView, ...]
    now: datetime
    next_in: timedelta | None

"""Events of schedules."""

from __future__ import annotations

from typing import ClassVar

from perdure.events.base import Event


class ScheduleFired(Event, frozen=True):
    """A nominal time of a schedule enqueued its job."""

    sentence: ClassVar[str] = "schedule fired"
    schedule: str
    nominal: str
    job_id: str
    late: float
    cause: str
    queue: str = ""
    kind: str = ""


class ScheduleMissed(Event, frozen=True):
    """No process ran at nominal times of a schedule, and they are now too old or replaced by a later one."""

    sentence: ClassVar[str] = "nominal times missed"
    level: ClassVar[str] = "warning"
    schedule: str
    missed: int
    first: str
    last: str


class ScheduleOverlapped(Event, frozen=True):
    """A nominal time was skipped because the schedule's previous job is not finished."""

    sentence: ClassVar[str] = "nominal time skipped, the previous job is not finished"
    level: ClassVar[str] = "warning"
    schedule: str
    nominal: str


class ScheduleBroken(Event, frozen=True):
    """A stored schedule cannot be read; it does not fire until it is corrected."""

    sentence: ClassVar[str] = "schedule cannot be read"
    level: ClassVar[str] = "error"
    schedule: str
    error: str

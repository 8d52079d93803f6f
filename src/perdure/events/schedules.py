"""What happens at the nominal times of schedules."""

from __future__ import annotations

from typing import ClassVar

from perdure.events.base import Event


class ScheduleFired(Event, frozen=True):
    """A nominal time of a schedule has made its job."""

    sentence: ClassVar[str] = "schedule fired"
    schedule: str
    nominal: str
    job_id: str
    late: float
    cause: str


class ScheduleMissed(Event, frozen=True):
    """Nobody was there at nominal times of a schedule, and they are too old now or stand behind a later one."""

    sentence: ClassVar[str] = "nominal times missed"
    level: ClassVar[str] = "warning"
    schedule: str
    missed: int
    first: str
    last: str


class ScheduleOverlapped(Event, frozen=True):
    """A nominal time was let go because the schedule's last job is not finished."""

    sentence: ClassVar[str] = "nominal time let go, the last job is not finished"
    level: ClassVar[str] = "warning"
    schedule: str
    nominal: str


class ScheduleBroken(Event, frozen=True):
    """A stored schedule cannot be read; it does not fire until somebody mends it."""

    sentence: ClassVar[str] = "schedule cannot be read"
    level: ClassVar[str] = "error"
    schedule: str
    error: str

"""Schedules as declared and as made at run time: every part is checked before it is stored."""

from __future__ import annotations

from datetime import timedelta
from enum import StrEnum
from typing import Final, TypeVar

from perdure.domain.duration import Duration, format_duration, parse_duration
from perdure.domain.jobs.job import NewJob
from perdure.domain.schedule import Missed, Overlap, Schedule
from perdure.errors import ArgumentError
from perdure.kinds.options import checked_name
from perdure.policy.schedules.timetable import read_zone, timetable

_DEFAULT_GRACE: Final = timedelta(minutes=1)
_CATCH_UP: Final = timedelta(days=1)
_SHORTEST_INTERVAL: Final = timedelta(seconds=1)
Word = TypeVar("Word", bound=StrEnum)


def checked_schedule(
    name: str,
    job: NewJob,
    expression: str,
    *,
    tz: str = "UTC",
    missed: Missed | str = Missed.SKIP,
    within: Duration | None = None,
    overlap: Overlap | str = Overlap.SKIP,
    jitter: Duration = 0,
) -> Schedule:
    """A schedule that enqueues jobs like this one; invalid options are refused by name.

    `within` is how late a nominal time may still be handled: one minute with missed="skip", else one day.
    """
    checked_name("name", name)
    if job.unique is not None:
        raise ArgumentError("unique", "cannot be combined with a schedule: choose its overlap= instead")
    if job.delay is not None or job.run_at is not None:
        raise ArgumentError(
            "run_at", "and delay cannot be combined with a schedule: its times come from the expression"
        )
    if job.ref is not None:
        raise ArgumentError("ref", "cannot be combined with a schedule: only its first job could have it")
    timetable(expression, tz)
    read_zone(tz)  # an interval needs no time zone, and must not be stored with a wrong one
    policy = _word("missed", Missed, missed)
    span = (
        (_DEFAULT_GRACE if policy is Missed.SKIP else _CATCH_UP) if within is None else parse_duration("within", within)
    )
    if span < _SHORTEST_INTERVAL:
        raise ArgumentError("within", f"must be at least 1s, got {within!r}: every time is handled a little late")
    return Schedule(
        name=name,
        kind=job.kind,
        expression=expression,
        tz=tz,
        args=job.args,
        missed=policy,
        within=span,
        overlap=_word("overlap", Overlap, overlap),
        jitter=parse_duration("jitter", jitter),
        queue=job.queue,
        priority=job.priority,
        max_attempts=job.max_attempts,
        crash_limit=job.crash_limit,
        settings=job.settings,
        tags=job.tags,
        meta=job.meta,
        fair_key=job.fair_key,
    )


def one_expression(cron: str | None, every: Duration | None) -> str:
    """The expression of a schedule that is given as cron or as an interval."""
    if (cron is None) is (every is None):
        raise ArgumentError("cron", "or every must be given, and not both")
    if cron is not None:
        return cron
    interval = parse_duration("every", every or 0)
    if interval < _SHORTEST_INTERVAL:
        raise ArgumentError("every", f"must be at least 1s, got {format_duration(interval)}")
    return f"@every {every if isinstance(every, str) else format_duration(interval)}"


def _word(field: str, words: type[Word], given: str) -> Word:
    try:
        return words(given)
    except ValueError:
        raise ArgumentError(field, f"must be one of {', '.join(words)}, got {given!r}") from None

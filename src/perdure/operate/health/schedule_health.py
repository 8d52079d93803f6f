"""Whether schedules fire: overdue, unreadable, forgotten and paused ones, and what to do about them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import Final

from perdure.domain.duration import format_duration
from perdure.domain.schedule import Origin, ScheduleView
from perdure.errors import ArgumentError
from perdure.operate.wording import listed
from perdure.policy.schedules.timetable import timetable
from perdure.storage.operate.diagnosis import Finding, fine, problem, warning

OVERDUE: Final = timedelta(minutes=1)
FORGOTTEN: Final = timedelta(days=1)
_CHECK: Final = "schedules"


def judge_schedules(views: Sequence[ScheduleView], now: datetime) -> list[Finding]:
    """Check every schedule; `now` is the database's time."""
    findings = list(_complaints(views, now))
    if findings:
        return findings
    if not views:
        return [fine(_CHECK, "none")]
    paused = [view for view in views if view.paused_at is not None]
    seen = (
        f"{len(views):,} in time" if not paused else f"{len(views) - len(paused):,} in time, paused: {_names(paused)}"
    )
    return [fine(_CHECK, seen)]


def _complaints(views: Sequence[ScheduleView], now: datetime) -> Iterator[Finding]:
    unreadable = {view.name: found for view in views if (found := complaint(view))}
    if unreadable:
        seen = listed(f"{name!r}: {found}" for name, found in unreadable.items())
        yield problem(_CHECK, f"cannot be read, and do not fire: {seen}", "change the expression or the zone of these")
    overdue = [view for view in views if view.name not in unreadable and is_overdue(view, now)]
    forgotten = [view for view in overdue if is_forgotten(view, now)]
    late = [view for view in overdue if view not in forgotten]
    if late:
        longest = max(now - view.next_at for view in late if view.next_at is not None)
        seen = f"overdue, the longest by {_rounded(longest)}, as no process fires them: {_names(late)}"
        advice = "start a worker; one that is declared in code is fired only by workers of an app that declares it"
        yield problem(_CHECK, seen, advice)
    if forgotten:
        seen = f"overdue, and for a day declared by no process that starts: {_names(forgotten)}"
        advice = "if the code has dropped them, delete them: perdure schedules delete NAME; if not, start its worker"
        yield warning(_CHECK, seen, advice)
    ahead = [view for view in views if view.last_at is not None and view.last_at > now + OVERDUE]
    if ahead:
        seen = f"already handled for future times: {_names(ahead)}"
        advice = "the database's clock was set back; the next worker that opens corrects these, and fires nothing twice"
        yield warning(_CHECK, seen, advice)


def complaint(view: ScheduleView) -> str | None:
    """Why its expression or zone cannot be read, if so."""
    try:
        timetable(view.schedule.expression, view.schedule.tz)
    except ArgumentError as error:
        return str(error)
    return None


def is_overdue(view: ScheduleView, now: datetime) -> bool:
    """Whether it is overdue by more than a process needs to fire it."""
    return view.next_at is not None and now - view.next_at > OVERDUE


def is_forgotten(view: ScheduleView, now: datetime) -> bool:
    """Whether it comes from code that no process has started for a day."""
    return view.origin is Origin.DECLARED and (view.declared_at is None or now - view.declared_at > FORGOTTEN)


def _names(views: Iterable[ScheduleView]) -> str:
    return listed(repr(view.name) for view in views)


def _rounded(span: timedelta) -> str:
    return format_duration(timedelta(seconds=round(span.total_seconds())))

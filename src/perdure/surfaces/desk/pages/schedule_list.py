"""The schedules of a list: those that match a text and a condition, in pages."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Final

from msgspec import Struct

from perdure.domain.schedule import ScheduleView
from perdure.errors import ArgumentError
from perdure.operate.commands.calendar import ScheduleDetail
from perdure.operate.health.schedule_health import is_overdue
from perdure.surfaces.desk.visit import Visit

CONDITIONS: Final = {"": "all", "late": "late", "paused": "paused", "unreadable": "unreadable"}
_SCHEDULES_PER_PAGE: Final = 100


class ScheduleList(Struct, frozen=True, kw_only=True):
    """A page of a list: `matching` of `all` schedules match; the next page begins after the name `next`."""

    shown: tuple[ScheduleDetail, ...]
    matching: int
    all: int
    next: str | None
    given: dict[str, str]


def chosen_schedules(visit: Visit, details: Iterable[ScheduleDetail], now: datetime) -> ScheduleList:
    """The page for the parameters of the URL; `details` are all schedules."""
    given = {name: visit.query(name).strip() for name in ("name", "show")}
    if given["show"] not in CONDITIONS:
        raise ArgumentError("show", f"must be late, paused or unreadable, got {given['show']!r:.40}")
    every = sorted(details, key=lambda detail: detail.view.name)
    matching = [detail for detail in every if _matches(detail, given["name"].lower(), given["show"], now)]
    rest = [detail for detail in matching if detail.view.name > visit.query("after")]
    shown = tuple(rest[:_SCHEDULES_PER_PAGE])
    return ScheduleList(
        shown=shown,
        matching=len(matching),
        all=len(every),
        next=shown[-1].view.name if len(rest) > _SCHEDULES_PER_PAGE else None,
        given=given,
    )


def is_paused(view: ScheduleView, now: datetime) -> bool:
    """Whether it is paused now: until it is resumed, or until a future time."""
    return view.paused_at is not None and (view.paused_until is None or view.paused_until > now)


def _matches(detail: ScheduleDetail, text: str, condition: str, now: datetime) -> bool:
    view = detail.view
    if text and not any(text in word.lower() for word in (view.name, view.schedule.kind, view.schedule.queue)):
        return False
    if condition == "late":
        return is_overdue(view, now)
    if condition == "paused":
        return is_paused(view, now)
    return not condition or detail.unreadable is not None

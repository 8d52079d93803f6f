"""The rail: the pages of the desk in order, their keyboard shortcuts, and figures beside their names."""

from __future__ import annotations

import asyncio
from typing import Final

from msgspec import Struct

from perdure.domain.jobs.states import JobState
from perdure.operate.desk import Desk
from perdure.operate.health.checkup import ASSUMED_LEASE
from perdure.storage.records import JobFilter

_DEAD: Final = JobFilter(states=frozenset({JobState.DEAD}))
_JOBS_COUNTED: Final = 1_000
_APPROVALS_COUNTED: Final = 200


class RailEntry(Struct, frozen=True):
    """A page of the rail. `key` follows `g` on the keyboard; `gap`: space above it; `scope`: who sees it."""

    name: str
    title: str
    path: str
    key: str
    gap: bool = False
    scope: str = "read"


ENTRIES: Final = (
    RailEntry("overview", "Overview", "/", "o"),
    RailEntry("jobs", "Jobs", "/jobs", "j"),
    RailEntry("dead", "Dead letters", "/dead", "d"),
    RailEntry("approvals", "Approvals", "/approvals", "p"),
    RailEntry("queues", "Queues", "/queues", "q", gap=True),
    RailEntry("kinds", "Kinds", "/kinds", "k"),
    RailEntry("flows", "Flows", "/flows", "f"),
    RailEntry("gates", "Gates", "/gates", "t"),
    RailEntry("schedules", "Schedules", "/schedules", "s", gap=True),
    RailEntry("workers", "Workers", "/workers", "w"),
    RailEntry("alerts", "Alerts", "/alerts", "l"),
    RailEntry("webhooks", "Webhooks", "/webhooks", "h"),
    RailEntry("bulk", "Bulk commands", "/bulk", "b"),
    RailEntry("audit", "Audit", "/audit", "a"),
    RailEntry("tokens", "Tokens", "/tokens", "n", scope="admin"),
)


class Badge(Struct, frozen=True):
    """A figure beside a name. `hot`: it needs a person."""

    count: int
    capped: bool = False
    hot: bool = False


Badges = dict[str, Badge]


async def count_badges(desk: Desk) -> Badges:
    """The figures of the rail. Their queries are bounded, however many jobs there are."""
    dead, asking, workers, now, schedules, opened = await asyncio.gather(
        desk.count(_DEAD, cap=_JOBS_COUNTED),
        desk.approvals(most=_APPROVALS_COUNTED),
        desk.workers(),
        desk.now(),
        desk.calendar.schedules(),
        desk.alerts.open(),
    )
    living = [one for one in workers if one.dead_at is None and now - one.beat_at <= ASSUMED_LEASE]
    badges = {"workers": Badge(len(living)), "schedules": Badge(len(schedules))}
    if opened:
        badges["alerts"] = Badge(len(opened), hot=True)
    if dead.jobs:
        badges["dead"] = Badge(dead.jobs, capped=dead.capped, hot=True)
    if asking:
        badges["approvals"] = Badge(len(asking), hot=True)
    return badges

"""Figures as agents see them: the overview, and two spans side by side."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from perdure.domain.alerts.alert import Alert
from perdure.domain.operate.statistics import Point, Statistics
from perdure.operate.attention.need import Need
from perdure.operate.records import Overview
from perdure.operate.views.comparison import Comparison
from perdure.operate.views.queue_views import QueueView
from perdure.surfaces.mcp.answers.base import Answer, Part
from perdure.surfaces.mcp.quoting import Quoted, Quoter, name, sentence

_QUEUES_SHOWN: Final = 50
_NEEDS_SHOWN: Final = 20
_ALERTS_SHOWN: Final = 20
_GROUPS_SHOWN: Final = 30
_MINUTE: Final = timedelta(minutes=1)


class NeedLine(Part):
    """Something that needs a person."""

    severity: str
    about: str
    what: Quoted
    since: datetime | None
    begin_with: str


class QueueLine(Part):
    """A queue now, and in the last hour. A count with `at_least` in its name may be higher."""

    name: str
    ready: int
    oldest_ready_at: datetime | None
    running: int
    parked: int
    dead: int
    counts_are_at_least: bool
    workers: int
    slots: int
    paused: bool
    succeeded_last_hour: int
    failed_attempts_last_hour: int
    wait_p95_seconds: float | None


class AlertLine(Part):
    """An open alert and its rule."""

    rule: str
    severity: str
    what: Quoted
    count: int
    since: datetime


class OverviewNow(Answer):
    """The overview: what needs a person, alerts, queues and workers. Empty `needs`: all is well."""

    at: datetime
    needs: list[NeedLine]
    more_needs: int
    open_alerts: list[AlertLine]
    more_alerts: int
    queues: list[QueueLine]
    more_queues: int
    running_workers: int
    lost_workers: int


class SpanFigures(Part):
    """The outcomes of attempts in one span."""

    succeeded: int
    retried: int
    died: int
    cancelled: int
    crashed: int
    held: int
    failure_share: float | None
    attempts_per_minute: float
    wait_p50_seconds: float | None
    wait_p95_seconds: float | None
    run_p50_seconds: float | None
    run_p95_seconds: float | None


class ComparedGroup(Part):
    """Both spans of one queue or kind, or of all jobs. None: nothing was counted."""

    name: str | None
    now: SpanFigures | None
    before: SpanFigures | None


class Span(Part):
    """The start and end of a span."""

    since: datetime
    until: datetime


class Compared(Answer):
    """The last span, and an earlier one of the same length."""

    now: Span
    before: Span
    groups: list[ComparedGroup]
    more_groups: int


def overview_now(
    quoter: Quoter, overview: Overview, needs: list[Need], alerts: list[Alert], queues: list[QueueView]
) -> OverviewNow:
    """The overview as an answer."""
    return OverviewNow(
        at=overview.at,
        needs=[_need(quoter, need) for need in needs[:_NEEDS_SHOWN]],
        more_needs=max(len(needs) - _NEEDS_SHOWN, 0),
        open_alerts=[_alert(quoter, alert) for alert in alerts[:_ALERTS_SHOWN]],
        more_alerts=max(len(alerts) - _ALERTS_SHOWN, 0),
        queues=[_queue(view) for view in queues[:_QUEUES_SHOWN]],
        more_queues=max(len(queues) - _QUEUES_SHOWN, 0),
        running_workers=sum(worker.dead_at is None for worker in overview.workers),
        lost_workers=sum(worker.dead_at is not None for worker in overview.workers),
    )


def compared(found: Comparison, at: datetime) -> Compared:
    """Two spans by group, as an answer."""
    now, before = _by_name(found.now), _by_name(found.before)
    names = sorted(now.keys() | before.keys(), key=lambda each: each or "")
    return Compared(
        now=Span(since=found.now.since, until=min(found.now.until, at)),
        before=Span(since=found.before.since, until=found.before.until),
        groups=[
            ComparedGroup(
                name=None if each is None else name(each),
                now=_figures(now.get(each), found.now, at),
                before=_figures(before.get(each), found.before, at),
            )
            for each in names[:_GROUPS_SHOWN]
        ],
        more_groups=max(len(names) - _GROUPS_SHOWN, 0),
    )


def _alert(quoter: Quoter, alert: Alert) -> AlertLine:
    return AlertLine(
        rule=name(alert.rule),
        severity=alert.severity,
        what=quoter.text(alert.title),
        count=alert.count,
        since=alert.opened_at,
    )


def _need(quoter: Quoter, need: Need) -> NeedLine:
    return NeedLine(
        severity=need.severity,
        about=f"{need.about} {name(need.name)}".rstrip(),
        what=quoter.text(f"{need.sentence} {need.detail}".strip(), 400),
        since=need.since,
        begin_with=sentence(need.cli),
    )


def _queue(view: QueueView) -> QueueLine:
    lately = view.statistics.total
    return QueueLine(
        name=name(view.name),
        ready=view.ready,
        oldest_ready_at=view.oldest_ready_at,
        running=view.running,
        parked=sum(view.parked.values()),
        dead=view.dead,
        counts_are_at_least=view.ready_capped or view.parked_capped or view.dead_capped,
        workers=view.workers,
        slots=view.slots,
        paused=view.paused,
        succeeded_last_hour=lately.succeeded,
        failed_attempts_last_hour=lately.failed,
        wait_p95_seconds=lately.wait.p95,
    )


def _by_name(found: Statistics) -> dict[str | None, Point]:
    return {group.queue or group.kind: group.total for group in found.groups}


def _figures(point: Point | None, among: Statistics, at: datetime) -> SpanFigures | None:
    if point is None:
        return None
    minutes = max((min(among.until, at) - among.since) / _MINUTE, 1.0)
    share = point.failure_share
    return SpanFigures(
        succeeded=point.succeeded,
        retried=point.retried,
        died=point.died,
        cancelled=point.cancelled,
        crashed=point.crashed,
        held=point.held,
        failure_share=None if share is None else round(share, 4),
        attempts_per_minute=round(point.attempts / minutes, 3),
        wait_p50_seconds=point.wait.p50,
        wait_p95_seconds=point.wait.p95,
        run_p50_seconds=point.run.p50,
        run_p95_seconds=point.run.p95,
    )

"""The life of a rule's alerts: opened, counted, ended, reported.

An alert is one cause for as long as it lasts. It stays live until its end was reported and `throttle` has passed: a
cause that comes back meanwhile is the same alert, so that one that comes and goes does not notify each time. Momentary
events, such as deaths, only count up; the alert is over after a while without any, and no recovery is reported.

A rule sends nothing in its quiet hours, and only a few notices a minute, or one per `throttle` if it groups its causes.
Until it may send again it collects what it finds, ends of alerts included, for one notice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from perdure.domain.alerts.alert import Alert, Cause
from perdure.domain.alerts.quiet import quiet_until
from perdure.domain.alerts.rule import AlertRule, Grouping
from perdure.policy.clock_slack import CLOCK_SLACK

NOTICES_PER_FLOOD: Final = 5
"""The most notices of one rule in a minute, each about new causes."""
_FLOOD_SPAN: Final = timedelta(minutes=1)
_CALM_AFTER: Final = timedelta(minutes=5)
_REFRESHED_EVERY: Final = timedelta(minutes=1)
"""A time that lies further ahead is of a clock that was set back since."""


class NoticeAlerts(Struct, frozen=True):
    """The alerts in one notice: those that opened or grew, and those that are over."""

    raised: tuple[Alert, ...]
    over: tuple[Alert, ...]


def follow(
    rule: AlertRule, found: Mapping[str, Cause], live: Iterable[Alert], now: datetime, new_id: Callable[[], str]
) -> list[Alert]:
    """The live alerts of a rule after a look that has found these causes; those that did not change stay the same."""
    after: list[Alert] = []
    known: set[str] = set()
    for alert in live:
        known.add(alert.key)
        cause = found.get(alert.key)
        after.append(_ended(rule, alert, now) if cause is None else _seen(rule, alert, cause, now))
    fresh = [cause for key, cause in found.items() if key not in known]
    return after + [_opened(rule, cause, now, new_id()) for cause in fresh]


def next_notice(
    rule: AlertRule, alerts: Iterable[Alert], said: Sequence[datetime], now: datetime
) -> NoticeAlerts | None:
    """The alerts for a notice now; None: there are none, or the rule may not send."""
    raised = tuple(alert for alert in alerts if _is_raised(rule, alert, now))
    over = tuple(alert for alert in alerts if _is_owed(rule, alert))
    if not raised and not over:
        return None
    if quiet_until(rule.quiet, now) is not None:
        return None
    most, span = (
        (1, rule.throttle) if rule.group is Grouping.RULE else (NOTICES_PER_FLOOD, min(_FLOOD_SPAN, rule.throttle))
    )
    if sum(timedelta(0) <= now - at < span for at in said) >= most:
        return None
    return NoticeAlerts(raised, over)


def reported(alert: Alert, now: datetime) -> Alert:
    """The alert after a notice has reported it."""
    return replace(alert, told_at=now, told_count=alert.count, told_end=not alert.is_open)


def rest(rule: AlertRule, alert: Alert) -> Alert:
    """An alert that is over, without a notice of its end."""
    if alert.is_open or alert.told_at is None or alert.told_end:
        return alert
    owes = _is_owed(rule, alert) or (alert.passes and alert.count > alert.told_count)
    return alert if owes else replace(alert, told_end=True)


def is_done(rule: AlertRule, alert: Alert, now: datetime) -> bool:
    """Whether an alert is history: reported, over, and past its throttle."""
    if alert.closed_at is None or alert.told_at is None or not alert.told_end:
        return False
    return _has_passed(rule.throttle, max(alert.told_at, alert.closed_at), now)


def _is_raised(rule: AlertRule, alert: Alert, now: datetime) -> bool:
    if alert.told_at is None:
        return True
    has_grown = (alert.is_open or alert.passes) and alert.count > alert.told_count
    return has_grown and _has_passed(rule.throttle, alert.told_at, now)


def _is_owed(rule: AlertRule, alert: Alert) -> bool:
    """Whether its end must be reported: its beginning was, and it has not come back."""
    if alert.is_open or alert.told_end or alert.told_at is None:
        return False
    return rule.recovery and not alert.passes and alert.count == alert.told_count


def _opened(rule: AlertRule, cause: Cause, now: datetime, alert_id: str) -> Alert:
    return Alert(
        id=alert_id,
        rule=rule.name,
        key=cause.key,
        severity=rule.severity,
        title=cause.title,
        detail=cause.detail,
        path=cause.path,
        cli=cause.cli,
        opened_at=now,
        last_at=now,
        passes=cause.passes,
        count=cause.happened,
    )


def _seen(rule: AlertRule, alert: Alert, cause: Cause, now: datetime) -> Alert:
    words = {"title": cause.title, "detail": cause.detail, "path": cause.path, "cli": cause.cli, "last_at": now}
    words["severity"] = rule.severity
    if not alert.is_open:
        return replace(alert, closed_at=None, told_end=False, count=alert.count + cause.happened, **words)
    if cause.passes:
        return replace(alert, count=alert.count + cause.happened, **words)
    return replace(alert, **words) if now - alert.last_at >= _REFRESHED_EVERY else alert


def _ended(rule: AlertRule, alert: Alert, now: datetime) -> Alert:
    if not alert.is_open or (alert.passes and not _has_passed(max(rule.throttle, _CALM_AFTER), alert.last_at, now)):
        return alert
    return replace(alert, closed_at=now)


def _has_passed(span: timedelta, since: datetime, now: datetime) -> bool:
    return now - since >= span or since - now > CLOCK_SLACK

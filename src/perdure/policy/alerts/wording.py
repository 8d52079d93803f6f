"""The text of a notice: a title with the worst first, then what, since when and where to look."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from msgspec import Struct

from perdure.domain.alerts.alert import Alert, NoticeSort
from perdure.domain.alerts.rule import AlertRule, AlertSeverity
from perdure.domain.duration import format_duration
from perdure.policy.alerts.following import NoticeAlerts

ALERTS_LISTED: Final = 10
TITLE_LIMIT_CHARACTERS: Final = 200
BODY_LIMIT_CHARACTERS: Final = 8_000


class Draft(Struct, frozen=True, kw_only=True):
    """A notice before it is sent to channels."""

    sort: NoticeSort
    severity: AlertSeverity
    title: str
    body: str
    path: str
    alerts: int = 0
    count: int = 0
    keys: tuple[str, ...] = ()


def draft(rule: AlertRule, notice: NoticeAlerts, now: datetime) -> Draft:
    """The text of a rule's notice."""
    every = (*notice.raised, *notice.over)
    is_recovery = not notice.raised
    lines = [_line(alert, now) for alert in every[:ALERTS_LISTED]]
    if len(every) > ALERTS_LISTED:
        lines.append(f"… and {len(every) - ALERTS_LISTED:,} more")
    closing = [f"Rule: {rule.name} ({rule.when})", f"Since: {min(a.opened_at for a in every):%Y-%m-%d %H:%M:%S} UTC"]
    first = every[0]
    if first.cli and not is_recovery:
        closing.append(f"Look: {first.cli}")
    return Draft(
        sort=NoticeSort.RECOVERY if is_recovery else NoticeSort.ALERT,
        severity=AlertSeverity.INFO if is_recovery else rule.severity,
        title=one_line(_title(every, now)),
        body="\n".join(("\n".join(lines), "", *closing))[:BODY_LIMIT_CHARACTERS],
        path=first.path if len(every) == 1 else "/alerts",
        alerts=len(every),
        count=sum(alert.count for alert in every),
        keys=tuple(alert.key for alert in every[:ALERTS_LISTED]),
    )


def one_line(text: str, longest: int = TITLE_LIMIT_CHARACTERS) -> str:
    """A text as a title: one line without control characters, which could become a header of an e-mail."""
    flat = " ".join("".join(one if one.isprintable() else " " for one in text).split())
    return flat if len(flat) <= longest else f"{flat[: longest - 1]}…"


def _title(every: tuple[Alert, ...], now: datetime) -> str:
    first = every[0]
    more = f" (and {len(every) - 1:,} more)" if len(every) > 1 else ""
    return f"{_head(first, now)}{more}"


def _head(alert: Alert, now: datetime) -> str:
    if not alert.is_open and not alert.passes:
        lasted = format_duration(
            (alert.closed_at or now).replace(microsecond=0) - alert.opened_at.replace(microsecond=0)
        )
        return f"Over after {lasted}: {alert.title}"
    return f"{alert.title} ({alert.count:,} times)" if alert.count > 1 else alert.title


def _line(alert: Alert, now: datetime) -> str:
    detail = f"\n    {alert.detail}" if alert.detail else ""
    return f"- {_head(alert, now)}{detail}"

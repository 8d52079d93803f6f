"""Rules, channels, alerts and notices as tables."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from rich.table import Table
from rich.text import Text

from perdure.domain.alerts.alert import Alert, DeliveryState, Notice
from perdure.domain.alerts.channel import ChannelView
from perdure.domain.alerts.rule import AlertRule, AlertSeverity, RuleView, Source
from perdure.domain.duration import format_duration
from perdure.surfaces.cli.terminal.pieces import cell, columns
from perdure.surfaces.cli.terminal.times import relative, rough

_STYLE: Final = {AlertSeverity.CRITICAL: "bold red", AlertSeverity.WARNING: "yellow", AlertSeverity.INFO: "dim"}
_DELIVERED: Final = {DeliveryState.SENT: "green", DeliveryState.PENDING: "yellow", DeliveryState.FAILED: "bold red"}
_ORIGIN: Final = {Source.CODE: "code", Source.DESK: "run time"}


def rule_table(found: Sequence[RuleView], alerts: Sequence[Alert], now: datetime) -> Table:
    """Rules with how many of their alerts are open."""
    table = columns("Name", "When", "To", "Severity", "State", "Open", "From", giving_way={"Name", "When", "To"})
    for view in found:
        rule = view.rule
        opened = sum(alert.rule == rule.name for alert in alerts)
        table.add_row(
            cell(rule.name),
            cell(meaning(rule)),
            cell(", ".join(rule.to)),
            Text(rule.severity, style=_STYLE[rule.severity]),
            _state(view, now),
            Text(f"{opened:,}", style="bold red" if opened else "dim"),
            Text(_ORIGIN[view.source], style="dim"),
        )
    return table


def channel_table(found: Sequence[ChannelView], now: datetime) -> Table:
    """Channels, and the outcomes of their deliveries."""
    table = columns("Name", "Address", "State", "Last sent", "Last error", "From", giving_way={"Address", "Last error"})
    for view in found:
        table.add_row(
            cell(view.name),
            cell(view.address),
            _health(view),
            Text("never" if view.sent_at is None else relative(view.sent_at, now)),
            cell(view.error or "", "dim"),
            Text(_ORIGIN[view.source], style="dim"),
        )
    return table


def alert_table(found: Sequence[Alert], now: datetime) -> Table:
    """Open and ended alerts."""
    table = columns("Opened", "State", "Severity", "Rule", "What", "Count", giving_way={"Rule", "What"})
    for alert in found:
        over = "" if alert.closed_at is None else f"over {relative(alert.closed_at, now)}"
        table.add_row(
            Text(relative(alert.opened_at, now)),
            Text(over, style="dim") if over else Text("open", style="bold red"),
            Text(alert.severity, style=_STYLE[alert.severity]),
            cell(alert.rule),
            cell(alert.title),
            Text(f"{alert.count:,}"),
        )
    return table


def notice_table(found: Sequence[Notice], now: datetime) -> Table:
    """Notices with their deliveries."""
    table = columns("Sent", "What", "Title", "Channels", giving_way={"Title", "Channels"})
    for notice in found:
        channels = Text(", ").join(
            Text(f"{one.channel} {one.state}", style=_DELIVERED[one.state]) for one in notice.deliveries
        )
        table.add_row(Text(relative(notice.at, now)), Text(notice.sort, style="dim"), cell(notice.title), channels)
    return table


def meaning(rule: AlertRule) -> str:
    """A rule in a few words."""
    subject = rule.queue or rule.kind or rule.about
    words = [str(rule.when), *([subject] if subject else []), *([f"≥ {rule.limit:g}"] if rule.limit else [])]
    if rule.within is not None:
        words.append(f"within {format_duration(rule.within)}")
    return " ".join(words)


def _health(view: ChannelView) -> Text:
    """Whether notices go through a channel; one that has failed since its last notice is never called fine."""
    if view.is_broken:
        return Text("does not work", style="bold red")
    if view.failures:
        return Text("failed last", style="yellow")
    return Text("fine", style="green") if view.sent_at else Text("not used yet", style="dim")


def _state(view: RuleView, now: datetime) -> Text:
    if not view.is_paused(now):
        return Text("active", style="green")
    span = "" if view.paused_until is None else f" for {rough(view.paused_until - now)}"
    return Text(f"paused{span}", style="yellow")

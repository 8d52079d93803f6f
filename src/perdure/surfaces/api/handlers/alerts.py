"""Alerts: rules, channels, open alerts and sent notices."""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from perdure.domain.alerts.alert import Alert, Notice
from perdure.domain.alerts.channel import ChannelView
from perdure.domain.alerts.rule import AlertRule, AlertSeverity, Grouping, RuleView, When
from perdure.operate.alerts.commands import AlertsSeen, NoticesSeen
from perdure.operate.alerts.previews import AlertPreview
from perdure.operate.alerts.rules import make_rule
from perdure.surfaces.api.filters import read_cursor, write_cursor
from perdure.surfaces.api.handlers.jobs.commands import Because
from perdure.surfaces.api.handlers.schedules import PauseUntil
from perdure.surfaces.api.route import Call, Given
from perdure.surfaces.api.values import Limit


class AlertPageQuery(Given, frozen=True, kw_only=True):
    """Which alerts, and which page of them."""

    rule: str | None = None
    limit: Limit = 50
    cursor: str | None = None


class NoticePageQuery(Given, frozen=True, kw_only=True):
    """Which page of the notices."""

    limit: Limit = 50
    cursor: str | None = None


class RuleBody(Because, frozen=True, kw_only=True):
    """A rule. `limit` is a number of jobs, a duration such as "5m", or a share such as 0.2 or "20%"."""

    when: When
    to: tuple[str, ...]
    queue: str | None = None
    kind: str | None = None
    about: str | None = None
    limit: str | int | float | None = None
    within: str | None = None
    lasting: str = "0s"
    least: int | None = None
    severity: AlertSeverity = AlertSeverity.WARNING
    throttle: str = "10m"
    group: Grouping = Grouping.CAUSE
    quiet: tuple[str, ...] = ()
    recovery: bool = True


class ChannelBody(Because, frozen=True, kw_only=True):
    """A channel. `address` is `env:NAME`, or an address that is stored encrypted. `secret` signs webhooks."""

    address: str
    secret: str | None = None
    allow_private: bool = False


class ChannelNames(Because, frozen=True, kw_only=True):
    """Which channels."""

    channels: tuple[str, ...]


class RuleList(Struct, frozen=True):
    """All rules, by name."""

    rules: tuple[RuleView, ...]


class ChannelList(Struct, frozen=True):
    """All channels by name, without their secrets."""

    channels: tuple[ChannelView, ...]


class OpenAlerts(Struct, frozen=True):
    """The alerts that are open now, newest first."""

    alerts: tuple[Alert, ...]


class Gone(Struct, frozen=True):
    """The name of the deleted thing."""

    name: str


async def list_open(call: Call[None, None]) -> OpenAlerts:
    """List the alerts that are open now."""
    return OpenAlerts(tuple(await call.desk.alerts.open()))


async def list_history(call: Call[AlertPageQuery, None]) -> AlertsSeen:
    """List open and ended alerts, newest first."""
    query = call.query
    listed = ["alerts", query.rule]
    before = read_cursor(listed, query.cursor)
    found = await call.desk.alerts.history(rule=query.rule, limit=query.limit, before=before)
    return replace(found, next=write_cursor(listed, found.next))


async def list_notices(call: Call[NoticePageQuery, None]) -> NoticesSeen:
    """List notices, newest first, with the state of each delivery."""
    listed = ["notices"]
    before = read_cursor(listed, call.query.cursor)
    found = await call.desk.alerts.notices(limit=call.query.limit, before=before)
    return replace(found, next=write_cursor(listed, found.next))


async def show_notice(call: Call[None, None]) -> Notice:
    """Show a notice with its deliveries."""
    return await call.desk.alerts.notice(call.path["id"])


async def list_rules(call: Call[None, None]) -> RuleList:
    """List the rules of alerts."""
    return RuleList(tuple(await call.desk.alerts.rules()))


async def show_rule(call: Call[None, None]) -> RuleView:
    """Show a rule."""
    return await call.desk.alerts.rule(call.path["name"])


async def put_rule(call: Call[None, RuleBody]) -> RuleView:
    """Create or replace a rule; 409 if it is declared in code."""
    return await call.desk.alerts.save(_rule(call), why=call.body.why)


async def preview_new_rule(call: Call[None, RuleBody]) -> AlertPreview:
    """Preview a rule: what it finds now, and the notice it would send. Stores and sends nothing."""
    return await call.desk.alerts.preview(_rule(call))


async def pause_rule(call: Call[None, PauseUntil]) -> RuleView:
    """Pause a rule, also one declared in code."""
    return await call.desk.alerts.pause(call.path["name"], until=call.body.until, why=call.body.why)


async def resume_rule(call: Call[None, Because]) -> RuleView:
    """Resume a paused rule."""
    return await call.desk.alerts.resume(call.path["name"], why=call.body.why)


async def delete_rule(call: Call[None, Because]) -> Gone:
    """Delete a rule; its open alerts end without a notice."""
    await call.desk.alerts.delete(call.path["name"], why=call.body.why)
    return Gone(call.path["name"])


async def list_channels(call: Call[None, None]) -> ChannelList:
    """List the channels of alerts, without their secrets."""
    return ChannelList(tuple(await call.desk.alerts.channels()))


async def put_channel(call: Call[None, ChannelBody]) -> ChannelView:
    """Create or replace a channel; 409 if it is declared in code."""
    body = call.body
    return await call.desk.alerts.save_channel(
        call.path["name"], body.address, secret=body.secret, allow_private=body.allow_private, why=body.why
    )


async def delete_channel(call: Call[None, Because]) -> Gone:
    """Delete a channel that no rule uses."""
    await call.desk.alerts.delete_channel(call.path["name"], why=call.body.why)
    return Gone(call.path["name"])


async def send_test(call: Call[None, ChannelNames]) -> Notice:
    """Send a test notice to channels; the notice shows the outcome later."""
    return await call.desk.alerts.test(call.body.channels, why=call.body.why)


def _rule(call: Call[None, RuleBody]) -> AlertRule:
    body = call.body
    return make_rule(
        call.path["name"],
        body.when,
        to=body.to,
        queue=body.queue,
        kind=body.kind,
        about=body.about,
        limit=body.limit,
        within=body.within,
        lasting=body.lasting,
        least=body.least,
        severity=body.severity,
        throttle=body.throttle,
        group=body.group,
        quiet=body.quiet,
        recovery=body.recovery,
    )

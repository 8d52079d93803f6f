"""Alerts: rules that watch jobs, queues, workers and schedules, and channels that carry what they find.

from perdure import App, alerts

app = App("sqlite:///shop.db")
alerts.channel(app, "ops", "env:OPS_SLACK")
alerts.rule(app, "payments", "job_died", kind="charge", to="ops", severity="critical")
"""

from __future__ import annotations

from collections.abc import Iterable

from perdure.app.app import App
from perdure.domain.alerts.alert import Alert, Delivery, DeliveryState, Notice, NoticeSort
from perdure.domain.alerts.channel import ChannelView
from perdure.domain.alerts.quiet import QuietHours
from perdure.domain.alerts.rule import AlertRule, AlertSeverity, Grouping, RuleView, When
from perdure.domain.duration import Duration
from perdure.errors import SettingsError
from perdure.operate.alerts.addresses import make_channel
from perdure.operate.alerts.previews import AlertPreview
from perdure.operate.alerts.rules import make_rule
from perdure.signals.alerts.delivery import serve as _serve

__all__ = [
    "Alert",
    "AlertPreview",
    "AlertRule",
    "AlertSeverity",
    "ChannelView",
    "Delivery",
    "DeliveryState",
    "Grouping",
    "Notice",
    "NoticeSort",
    "QuietHours",
    "RuleView",
    "When",
    "channel",
    "make_rule",
    "rule",
    "serve",
]


def channel(app: App, name: str, address: str, *, secret: str | None = None, allow_private: bool = False) -> None:
    """Declare a channel: `alerts.channel(app, "ops", "env:OPS_SLACK")`.

    `address` is `env:NAME`, read where a worker delivers; or the address itself, which is stored encrypted with the key
    in PERDURE_ALERTS_KEY. It is `smtp://…`, `smtps://…`, `https://…` for a webhook signed with `secret`, or one that
    Apprise knows, such as `slack://…`. A webhook or service may lead to an address that is not public only with
    `allow_private`.
    """
    _checked(app).alerts.add_channel(make_channel(name, address, secret=secret, allow_private=allow_private))
    _serve(app)


def rule(
    app: App,
    name: str,
    when: When | str,
    *,
    to: Iterable[str] | str,
    queue: str | None = None,
    kind: str | None = None,
    about: str | None = None,
    limit: Duration | None = None,
    within: Duration | None = None,
    lasting: Duration = 0,
    least: int | None = None,
    severity: AlertSeverity | str = AlertSeverity.WARNING,
    throttle: Duration = "10m",
    group: Grouping | str = Grouping.CAUSE,
    quiet: Iterable[QuietHours | str] | QuietHours | str = (),
    recovery: bool = True,
) -> AlertRule:
    """Declare a rule, whose channels are declared before it: `alerts.rule(app, "x", "job_died", to="ops")`.

    `when` says what it looks for; `queue`, `kind` or `about` (a schedule, budget, breaker or worker) choose; `limit`,
    `within` and `least` say how much is too much; a cause must last for `lasting`. Notices of one cause are `throttle`
    apart. In `quiet` hours, such as "22:00-07:00 Europe/Berlin", no notices are sent until their end.
    """
    made = make_rule(
        name,
        when,
        to=to,
        queue=queue,
        kind=kind,
        about=about,
        limit=limit,
        within=within,
        lasting=lasting,
        least=least,
        severity=severity,
        throttle=throttle,
        group=group,
        quiet=quiet,
        recovery=recovery,
    )
    _checked(app).alerts.add_rule(made)
    _serve(app)
    return made


def serve(app: App) -> None:
    """Have the workers of this app deliver alerts, even if it declares none. `perdure worker` does this by itself."""
    _serve(_checked(app))


def _checked(app: App) -> App:
    if not isinstance(app, App):
        raise SettingsError("app", f"must be an App, got {app!r}")
    return app

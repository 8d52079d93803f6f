"""Settings, under the names that certctl has always had.

They are read whenever a notification is sent. A channel is set up if its first variable has a value; removing that
variable deletes the channel.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final, TypeVar

from perdure import SettingsError, interval_from_env
from perdure_systems.kit.settings import Environment, number_from_env, switch_from_env, text_from_env
from perdure_systems.notifications.channels.email import EmailChannel
from perdure_systems.notifications.channels.message import Channel, Severity
from perdure_systems.notifications.channels.notifier import Notifier
from perdure_systems.notifications.channels.opsgenie import OpsGenieChannel, Priority
from perdure_systems.notifications.channels.pagerduty import PagerDutyChannel
from perdure_systems.notifications.channels.slack import SlackChannel
from perdure_systems.notifications.channels.teams import TeamsChannel
from perdure_systems.notifications.channels.webhook import WebhookChannel

E = TypeVar("E", Severity, Priority)

RETRY_INTERVAL: Final = "CERTCTL_NOTIFICATION_RETRY_INTERVAL"
_PAGERDUTY: Final = "https://events.pagerduty.com"
_OPSGENIE: Final = "https://api.opsgenie.com"
_LARGEST_PORT: Final = 65_535


def retry_interval(environment: Environment | None = None) -> timedelta:
    """How often due retries are looked after: 2 minutes, or what the variable says; at least a second."""
    return interval_from_env(RETRY_INTERVAL, "2m", environment=environment)


def notifier_for(channel: str, environment: Environment | None = None) -> Notifier | None:
    """The notifier of a channel; None if the channel is not set up, or there is none of that name."""
    try:
        read = _READERS[Channel(channel)]
    except ValueError:
        return None
    return read(environment)


def _email(environment: Environment | None) -> Notifier | None:
    host = text_from_env("CERTCTL_SMTP_HOST", environment=environment)
    if not host:
        return None
    return EmailChannel(
        host=host,
        port=number_from_env("CERTCTL_SMTP_PORT", 587, at_least=1, at_most=_LARGEST_PORT, environment=environment),
        username=text_from_env("CERTCTL_SMTP_USERNAME", environment=environment),
        password=text_from_env("CERTCTL_SMTP_PASSWORD", environment=environment),
        sender=text_from_env("CERTCTL_SMTP_FROM_ADDRESS", "certctl@localhost", environment=environment),
        recipient=text_from_env("CERTCTL_SMTP_TO_ADDRESS", environment=environment),
        use_tls=switch_from_env("CERTCTL_SMTP_USE_TLS", default=True, environment=environment),
    )


def _webhook(environment: Environment | None) -> Notifier | None:
    url = text_from_env("CERTCTL_WEBHOOK_URL", environment=environment)
    secret = text_from_env("CERTCTL_WEBHOOK_SECRET", environment=environment)
    return WebhookChannel(url=url, secret=secret) if url else None


def _slack(environment: Environment | None) -> Notifier | None:
    url = text_from_env("CERTCTL_SLACK_WEBHOOK_URL", environment=environment)
    if not url:
        return None
    return SlackChannel(
        url=url,
        channel=text_from_env("CERTCTL_SLACK_CHANNEL", environment=environment),
        username=text_from_env("CERTCTL_SLACK_USERNAME", "certctl", environment=environment),
    )


def _teams(environment: Environment | None) -> Notifier | None:
    url = text_from_env("CERTCTL_TEAMS_WEBHOOK_URL", environment=environment)
    return TeamsChannel(url=url) if url else None


def _pagerduty(environment: Environment | None) -> Notifier | None:
    routing_key = text_from_env("CERTCTL_PAGERDUTY_ROUTING_KEY", environment=environment)
    if not routing_key:
        return None
    return PagerDutyChannel(
        base_url=text_from_env("CERTCTL_PAGERDUTY_URL", _PAGERDUTY, environment=environment),
        routing_key=routing_key,
        severity=_one_of(Severity, "CERTCTL_PAGERDUTY_SEVERITY", Severity.WARNING, environment),
    )


def _opsgenie(environment: Environment | None) -> Notifier | None:
    api_key = text_from_env("CERTCTL_OPSGENIE_API_KEY", environment=environment)
    if not api_key:
        return None
    return OpsGenieChannel(
        base_url=text_from_env("CERTCTL_OPSGENIE_URL", _OPSGENIE, environment=environment),
        api_key=api_key,
        priority=_one_of(Priority, "CERTCTL_OPSGENIE_PRIORITY", Priority.P3, environment),
    )


def _one_of(words: type[E], variable: str, default: E, environment: Environment | None) -> E:
    value = text_from_env(variable, default, environment=environment)
    try:
        return words(value)
    except ValueError:
        raise SettingsError(variable, f"must be one of {', '.join(words)}, got {value!r}") from None


_READERS: Final = {
    Channel.EMAIL: _email,
    Channel.WEBHOOK: _webhook,
    Channel.SLACK: _slack,
    Channel.TEAMS: _teams,
    Channel.PAGERDUTY: _pagerduty,
    Channel.OPSGENIE: _opsgenie,
}

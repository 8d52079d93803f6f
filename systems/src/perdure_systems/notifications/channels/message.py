"""What is sent: the same message for every channel."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

import msgspec


class Channel(StrEnum):
    """The channels that there are."""

    EMAIL = "email"
    WEBHOOK = "webhook"
    SLACK = "slack"
    TEAMS = "teams"
    PAGERDUTY = "pagerduty"
    OPSGENIE = "opsgenie"


class Severity(StrEnum):
    """How bad it is, in the words of PagerDuty's Events API."""

    INFO = "info"
    WARNING = "warning"
    ERROR = "error"
    CRITICAL = "critical"


class Message(msgspec.Struct, frozen=True, kw_only=True):
    """One notification on its way out.

    `id` stays the same in every attempt, so that a receiver which knows it already can drop a repetition.
    """

    id: str
    subject: str
    body: str
    created_at: datetime
    recipient: str | None = None
    severity: Severity | None = None

    @property
    def headline(self) -> str:
        """The subject on one line: line breaks must not reach the headers of an e-mail."""
        return " ".join(self.subject.split())

"""Webhooks: which events are sent to which receiver."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from msgspec import Struct

from perdure.domain.operate.event_log import EventFilter, LoggedEvent

DELIVERY: Final = "perdure.webhook"
"""The kind of the jobs that deliver webhooks."""

QUEUE: Final = "perdure-webhooks"

UNTOLD: Final = frozenset({DELIVERY, "perdure.alert"})
"""Kinds whose ends no webhook sends: an unreachable receiver must not create more deliveries."""


class Webhook(Struct, frozen=True, kw_only=True):
    """A receiver, and the events that it gets. `is_declared`: code declares it, and holds its secret."""

    name: str
    url: str
    wants: EventFilter = EventFilter()
    is_declared: bool = False

    def is_sent(self, event: LoggedEvent) -> bool:
        """Whether this event is sent to its receiver."""
        return event.kind not in UNTOLD and self.wants.lets(event)


class WebhookView(Struct, frozen=True, kw_only=True):
    """A webhook as it is stored. Its secret is not part of it. `cursor` is the last event that was sent."""

    webhook: Webhook
    has_secret: bool
    cursor: str
    created_at: datetime
    changed_at: datetime
    paused_at: datetime | None = None

"""Events of webhooks."""

from __future__ import annotations

from typing import ClassVar

from perdure.events.base import Event


class WebhookSkipped(Event, frozen=True):
    """Events that a webhook had not sent yet are no longer kept; it continues with new ones. Raise the log's `keep`."""

    sentence: ClassVar[str] = "webhook skipped events"
    level: ClassVar[str] = "error"
    webhook: str
    why: str

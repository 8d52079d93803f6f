"""Webhooks, their secrets, and their cursors in the event log."""

from __future__ import annotations

from typing import Protocol

from perdure.domain.operate.audit import By
from perdure.domain.operate.event_log import Cursor
from perdure.domain.operate.webhook import Webhook, WebhookView


class WebhookStore(Protocol):
    """Webhooks. Commands write an audit entry in their transaction, which never holds a secret."""

    async def save_webhook(self, webhook: Webhook, secret: str | None, begin: Cursor, by: By) -> WebhookView:
        """Store a webhook, or replace it; a new one gets the events after `begin`.

        Without a secret, the stored one is kept.
        """

    async def webhooks(self) -> list[WebhookView]:
        """All webhooks, by name."""

    async def pause_webhook(self, name: str, by: By, *, paused: bool) -> WebhookView | None:
        """Pause its deliveries, or resume them at its cursor; None if it is unknown."""

    async def delete_webhook(self, name: str, by: By) -> bool:
        """Forget a webhook; False if it is unknown."""

    async def move_webhook(self, name: str, expected: Cursor, to: Cursor) -> bool:
        """Move its cursor; False if another process has moved it first."""

    async def webhook_secret(self, name: str) -> str | None:
        """Its stored secret, for the delivery; None if it has none."""

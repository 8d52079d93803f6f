"""Webhooks of the store."""

from __future__ import annotations

from typing import Any

from perdure.domain.operate.audit import By
from perdure.domain.operate.event_log import Cursor
from perdure.domain.operate.webhook import Webhook, WebhookView
from perdure.engines.shared.database.instants import from_micros, maybe_moment
from perdure.engines.shared.operate.webhook_records import (
    read_webhook,
    webhook_deleted,
    webhook_paused,
    webhook_saved,
    webhook_text,
)
from perdure.engines.sqlite.database.database import Database
from perdure.engines.sqlite.database.transaction import Transaction
from perdure.engines.sqlite.operate.commands.audit import Audit


class WebhookPart:
    """Webhooks, their secrets, and their cursors."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._sql = database.statements("operate/commands/webhooks.sql")
        self._audit = Audit(database)

    async def save_webhook(self, webhook: Webhook, secret: str | None, begin: Cursor, by: By) -> WebhookView:
        """Store a webhook, or replace it."""
        row = {"name": webhook.name, "definition": webhook_text(webhook), "secret": secret, "cursor": str(begin)}

        def act(transaction: Transaction) -> WebhookView:
            before = self._found(transaction, webhook.name)
            transaction.change(self._sql["save"], row | {"now": transaction.now})
            self._audit.write(transaction, by, webhook_saved(before, webhook, secret=secret is not None))
            return self._known(transaction, webhook.name)

        return await self._database.write(act)

    async def webhooks(self) -> list[WebhookView]:
        """All webhooks, by name."""
        return await self._database.read(lambda each: [_view(row) for row in each.run(self._sql["all"])])

    async def pause_webhook(self, name: str, by: By, *, paused: bool) -> WebhookView | None:
        """Pause or resume its deliveries."""

        def act(transaction: Transaction) -> WebhookView | None:
            row = {"name": name, "paused": paused, "now": transaction.now}
            if not transaction.change(self._sql["pause"], row):
                return None
            self._audit.write(transaction, by, webhook_paused(name, paused=paused))
            return self._known(transaction, name)

        return await self._database.write(act)

    async def delete_webhook(self, name: str, by: By) -> bool:
        """Forget a webhook."""

        def act(transaction: Transaction) -> bool:
            before = self._found(transaction, name)
            if before is not None:
                transaction.change(self._sql["delete"], {"name": name})
                self._audit.write(transaction, by, webhook_deleted(before.webhook))
            return before is not None

        return await self._database.write(act)

    async def move_webhook(self, name: str, expected: Cursor, to: Cursor) -> bool:
        """Move its cursor."""
        row = {"name": name, "expected": str(expected), "to": str(to)}
        return await self._database.write(lambda each: bool(each.change(self._sql["move"], row)))

    async def webhook_secret(self, name: str) -> str | None:
        """Its stored secret."""
        rows = await self._database.read(lambda each: each.run(self._sql["secret"], {"name": name}))
        return None if not rows or rows[0][0] is None else str(rows[0][0])

    def _found(self, transaction: Transaction, name: str) -> WebhookView | None:
        rows = transaction.run(self._sql["one"], {"name": name})
        return _view(rows[0]) if rows else None

    def _known(self, transaction: Transaction, name: str) -> WebhookView:
        [row] = transaction.run(self._sql["one"], {"name": name})
        return _view(row)


def _view(row: tuple[Any, ...]) -> WebhookView:
    _, definition, has_secret, cursor, paused_at, created_at, changed_at = row
    return WebhookView(
        webhook=read_webhook(definition),
        has_secret=bool(has_secret),
        cursor=cursor,
        paused_at=maybe_moment(paused_at),
        created_at=from_micros(created_at),
        changed_at=from_micros(changed_at),
    )

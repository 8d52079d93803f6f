"""Webhooks of the store."""

from __future__ import annotations

from datetime import datetime

from perdure.clock import Clock
from perdure.domain.operate.audit import By
from perdure.domain.operate.event_log import Cursor
from perdure.domain.operate.webhook import Webhook, WebhookView
from perdure.engines.postgres.database.connections import Pool
from perdure.engines.postgres.database.naming import Naming
from perdure.engines.postgres.database.rows import Row
from perdure.engines.postgres.database.wire import Params, Wire
from perdure.engines.postgres.operate.commands.audit import Audit
from perdure.engines.shared.operate.webhook_records import (
    read_webhook,
    webhook_deleted,
    webhook_paused,
    webhook_saved,
    webhook_text,
)


class WebhookPart:
    """Webhooks, their secrets, and their cursors."""

    def __init__(self, naming: Naming, pool: Pool, clock: Clock | None) -> None:
        self._statements = naming.statements("operate/commands/webhooks.sql")
        self._pool = pool
        self._clock = clock
        self._audit = Audit(naming, clock)

    async def save_webhook(self, webhook: Webhook, secret: str | None, begin: Cursor, by: By) -> WebhookView:
        """Store a webhook, or replace it."""
        params: Params = {
            "name": webhook.name,
            "definition": webhook_text(webhook),
            "secret": secret,
            "cursor": str(begin),
            "now": self._now(),
        }

        async def work(wire: Wire) -> WebhookView:
            before = await self._found(wire, webhook.name)
            [row] = await wire.fetch(self._statements["save"], params)
            await self._audit.write(wire, by, webhook_saved(before, webhook, secret=secret is not None))
            return _view(row)

        return await self._pool.transaction(work)

    async def webhooks(self) -> list[WebhookView]:
        """All webhooks, by name."""
        return [_view(row) for row in await self._pool.rows(self._statements["all"], {})]

    async def pause_webhook(self, name: str, by: By, *, paused: bool) -> WebhookView | None:
        """Pause or resume its deliveries."""

        async def work(wire: Wire) -> WebhookView | None:
            rows = await wire.fetch(self._statements["pause"], {"name": name, "paused": paused, "now": self._now()})
            if not rows:
                return None
            await self._audit.write(wire, by, webhook_paused(name, paused=paused))
            return _view(rows[0])

        return await self._pool.transaction(work)

    async def delete_webhook(self, name: str, by: By) -> bool:
        """Forget a webhook."""

        async def work(wire: Wire) -> bool:
            before = await self._found(wire, name)
            if before is not None:
                await wire.fetch(self._statements["delete"], {"name": name})
                await self._audit.write(wire, by, webhook_deleted(before.webhook))
            return before is not None

        return await self._pool.transaction(work)

    async def move_webhook(self, name: str, expected: Cursor, to: Cursor) -> bool:
        """Move its cursor."""
        params = {"name": name, "expected": str(expected), "to": str(to)}
        return bool(await self._pool.rows(self._statements["move"], params))

    async def webhook_secret(self, name: str) -> str | None:
        """Its stored secret."""
        rows = await self._pool.rows(self._statements["secret"], {"name": name})
        return None if not rows or rows[0][0] is None else str(rows[0][0])

    async def _found(self, wire: Wire, name: str) -> WebhookView | None:
        rows = await wire.fetch(self._statements["one"], {"name": name})
        return _view(rows[0]) if rows else None

    def _now(self) -> datetime | None:
        return self._clock.now() if self._clock else None


def _view(row: Row) -> WebhookView:
    _, definition, has_secret, cursor, paused_at, created_at, changed_at = row
    return WebhookView(
        webhook=read_webhook(definition),
        has_secret=has_secret,
        cursor=cursor,
        paused_at=paused_at,
        created_at=created_at,
        changed_at=changed_at,
    )

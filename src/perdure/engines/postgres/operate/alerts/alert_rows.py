"""Rows of alerts: written by evaluations, and ended with their rules."""

from __future__ import annotations

from datetime import datetime

from msgspec.structs import replace

from perdure.domain.alerts.alert import Alert
from perdure.engines.postgres.database.arrays import storable
from perdure.engines.postgres.database.naming import Naming
from perdure.engines.postgres.database.wire import Params, Wire
from perdure.engines.shared.operate.alert_records import alert_of, text_of


class AlertRows:
    """The alerts of the store, in transactions of others."""

    def __init__(self, naming: Naming) -> None:
        self._sql = naming.statements("alerts.sql")

    async def put(self, wire: Wire, alert: Alert, *, is_live: bool) -> None:
        """Write an alert; one that is not live is history."""
        params: Params = {
            "id": alert.id,
            "rule": alert.rule,
            "key": storable(alert.key),
            "is_open": alert.is_open,
            "is_live": is_live,
            "opened_at": alert.opened_at,
            "alert": text_of(alert),
        }
        await wire.fetch(self._sql["put_alert"], params)

    async def end(self, wire: Wire, rule: str, now: datetime) -> None:
        """End the alerts of a deleted rule, without a notice."""
        for (text,) in await wire.fetch(self._sql["live_of"], {"rule": rule}):
            alert = alert_of(text)
            over = replace(alert, closed_at=alert.closed_at or now, told_end=True)
            await self.put(wire, over, is_live=False)

"""Rows of alerts: written by evaluations, and ended with their rules."""

from __future__ import annotations

from msgspec.structs import replace

from perdure.domain.alerts.alert import Alert
from perdure.engines.shared.database.instants import from_micros, to_micros
from perdure.engines.shared.operate.alert_records import alert_of, text_of
from perdure.engines.sqlite.database.database import Database
from perdure.engines.sqlite.database.rows import clean
from perdure.engines.sqlite.database.transaction import Transaction


class AlertRows:
    """The alerts of the store, in transactions of others."""

    def __init__(self, database: Database) -> None:
        self._sql = database.statements("alerts.sql")

    def put(self, transaction: Transaction, alert: Alert, *, is_live: bool) -> None:
        """Write an alert; one that is not live is history."""
        row = {
            "id": alert.id,
            "rule": alert.rule,
            "key": clean(alert.key),
            "is_open": alert.is_open,
            "is_live": is_live,
            "opened_at": to_micros(alert.opened_at),
            "alert": text_of(alert),
        }
        transaction.change(self._sql["put_alert"], row)

    def end(self, transaction: Transaction, rule: str) -> None:
        """End the alerts of a deleted rule, without a notice."""
        now = from_micros(transaction.now)
        for (text,) in transaction.run(self._sql["live_of"], {"rule": rule}):
            alert = alert_of(text)
            over = replace(alert, closed_at=alert.closed_at or now, told_end=True)
            self.put(transaction, over, is_live=False)

"""Rules and channels of alerts: made at run time, or declared by code again and again."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

from msgspec.structs import replace

from perdure.domain.alerts.channel import Channel, ChannelRecord
from perdure.domain.alerts.rule import AlertRule, RuleView, Source
from perdure.domain.operate.audit import By
from perdure.engines.shared.database.instants import from_micros, maybe_micros, maybe_moment, span
from perdure.engines.shared.operate.alert_records import (
    budget_limits,
    channel_changed,
    channel_record,
    readable,
    refuse_code,
    rule_changed,
    rule_view,
    text_of,
)
from perdure.engines.sqlite.database.database import Database
from perdure.engines.sqlite.database.rows import clean
from perdure.engines.sqlite.database.transaction import Transaction
from perdure.engines.sqlite.operate.alerts.alert_rows import AlertRows
from perdure.engines.sqlite.operate.commands.audit import Audit
from perdure.storage.operate.alerts import CODE_KEPT, BudgetLimits

_CODE_KEPT: Final = span(CODE_KEPT)


class AlertRulePart:
    """Rules, channels and budgets of the store."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._sql = database.statements("alert_rules.sql")
        self._rows = AlertRows(database)
        self._audit = Audit(database)

    async def alert_rules(self) -> list[RuleView]:
        """All rules, by name."""
        return await self._database.read(self.rules_within)

    def rules_within(self, transaction: Transaction) -> list[RuleView]:
        """All rules, by name, in a transaction that is open."""
        return readable(transaction.run(self._sql["rules"], _since(transaction)), _rule)

    async def save_alert_rule(self, rule: AlertRule, by: By) -> RuleView:
        """Create or replace a rule."""

        def act(transaction: Transaction) -> RuleView:
            before = self._rule(transaction, rule.name)
            refuse_code("rule", rule.name, None if before is None else before.source)
            row = {"name": rule.name, "rule": text_of(rule), "now": transaction.now}
            transaction.change(self._sql["save_rule"], row)
            now = from_micros(transaction.now)
            made = RuleView(rule=rule, source=Source.DESK, created_at=now, changed_at=now)
            after = made if before is None else replace(before, rule=rule, source=Source.DESK, changed_at=now)
            self._audit.write(transaction, by, rule_changed("save", rule.name, before, after))
            return after

        return await self._database.write(act)

    async def pause_alert_rule(
        self, name: str, by: By, *, paused: bool, until: datetime | None = None
    ) -> RuleView | None:
        """Pause or resume a rule."""

        def act(transaction: Transaction) -> RuleView | None:
            before = self._rule(transaction, name)
            if before is None:
                return None
            row = {
                "name": name,
                "paused_at": transaction.now if paused else None,
                "until": maybe_micros(until) if paused else None,
                "paused_by": clean(by.actor) if paused else None,
            }
            transaction.change(self._sql["pause_rule"], row)
            after = self._rule(transaction, name)
            self._audit.write(transaction, by, rule_changed("pause" if paused else "resume", name, before, after))
            return after

        return await self._database.write(act)

    async def delete_alert_rule(self, name: str, by: By) -> bool:
        """Delete a rule."""

        def act(transaction: Transaction) -> bool:
            before = self._rule(transaction, name)
            if before is None:
                return False
            transaction.change(self._sql["delete_rule"], {"name": name})
            self._rows.end(transaction, name)
            self._audit.write(transaction, by, rule_changed("delete", name, before, None))
            return True

        return await self._database.write(act)

    async def alert_channels(self) -> list[ChannelRecord]:
        """All channels, by name."""
        return await self._database.read(self.channels_within)

    def channels_within(self, transaction: Transaction) -> list[ChannelRecord]:
        """All channels, by name, in a transaction that is open."""
        return readable(transaction.run(self._sql["channels"], _since(transaction)), _channel)

    async def save_alert_channel(self, channel: Channel, by: By) -> ChannelRecord:
        """Create or replace a channel."""

        def act(transaction: Transaction) -> ChannelRecord:
            before = self._channel(transaction, channel.name)
            refuse_code("channel", channel.name, None if before is None else before.source)
            row = {"name": channel.name, "channel": text_of(channel), "now": transaction.now}
            transaction.change(self._sql["save_channel"], row)
            [after] = [
                _channel(one) for one in transaction.run(self._sql["channel"], _named(transaction, channel.name))
            ]
            self._audit.write(transaction, by, channel_changed("save", channel.name, before, after))
            return after

        return await self._database.write(act)

    async def delete_alert_channel(self, name: str, by: By) -> bool:
        """Delete a channel."""

        def act(transaction: Transaction) -> bool:
            before = self._channel(transaction, name)
            if before is None:
                return False
            transaction.change(self._sql["delete_channel"], {"name": name})
            self._audit.write(transaction, by, channel_changed("delete", name, before, None))
            return True

        return await self._database.write(act)

    async def declare_alerts(
        self, rules: Sequence[AlertRule], channels: Sequence[Channel], budgets: Sequence[BudgetLimits]
    ) -> None:
        """Keep what code declares."""

        def act(transaction: Transaction) -> None:
            now = {"now": transaction.now}
            for rule in rules:
                transaction.change(self._sql["declare_rule"], {"name": rule.name, "rule": text_of(rule)} | now)
            for channel in channels:
                row = {"name": channel.name, "channel": text_of(channel)}
                transaction.change(self._sql["declare_channel"], row | now)
            for budget in budgets:
                row = {"name": budget.name, "limits": text_of(budget.limits)}
                transaction.change(self._sql["declare_budget"], row | now)

        await self._database.write(act)

    async def budget_limits(self) -> list[BudgetLimits]:
        """The limits of budgets."""
        return await self._database.read(lambda each: budget_limits(each.run(self._sql["budgets"], _since(each))))

    def _rule(self, transaction: Transaction, name: str) -> RuleView | None:
        rows = transaction.run(self._sql["rule"], _named(transaction, name))
        return _rule(rows[0]) if rows else None

    def _channel(self, transaction: Transaction, name: str) -> ChannelRecord | None:
        rows = transaction.run(self._sql["channel"], _named(transaction, name))
        return _channel(rows[0]) if rows else None


def _since(transaction: Transaction) -> dict[str, Any]:
    return {"declared_after": transaction.now - _CODE_KEPT}


def _named(transaction: Transaction, name: str) -> dict[str, Any]:
    return {"name": name} | _since(transaction)


def _rule(row: Sequence[Any]) -> RuleView:
    rule, source, created_at, changed_at, *times, paused_by = row
    created, changed = from_micros(created_at), from_micros(changed_at)
    return rule_view((rule, source, created, changed, *map(maybe_moment, times), paused_by))


def _channel(row: Sequence[Any]) -> ChannelRecord:
    channel, source, created_at, changed_at, *times, error, failures = row
    created, changed = from_micros(created_at), from_micros(changed_at)
    return channel_record((channel, source, created, changed, *map(maybe_moment, times), error, failures))

"""Rules and channels of alerts: made at run time, or declared by code again and again."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from perdure.clock import Clock
from perdure.domain.alerts.channel import Channel, ChannelRecord
from perdure.domain.alerts.rule import AlertRule, RuleView
from perdure.domain.operate.audit import By
from perdure.engines.postgres.database.arrays import storable
from perdure.engines.postgres.database.connections import Pool
from perdure.engines.postgres.database.naming import Naming
from perdure.engines.postgres.database.wire import Params, Wire
from perdure.engines.postgres.operate.alerts.alert_rows import AlertRows
from perdure.engines.postgres.operate.commands.audit import Audit
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
from perdure.storage.operate.alerts import CODE_KEPT, BudgetLimits

_CODE_KEPT: Final = CODE_KEPT.total_seconds()


class AlertRulePart:
    """Rules, channels and budgets of the store."""

    def __init__(self, naming: Naming, pool: Pool, clock: Clock | None) -> None:
        self._sql = naming.statements("alert_rules.sql")
        self._pool = pool
        self._clock = clock
        self._rows = AlertRows(naming)
        self._audit = Audit(naming, clock)

    async def alert_rules(self) -> list[RuleView]:
        """All rules, by name."""
        return readable(await self._pool.rows(self._sql["rules"], self._since()), rule_view)

    async def save_alert_rule(self, rule: AlertRule, by: By) -> RuleView:
        """Create or replace a rule."""

        async def work(wire: Wire) -> RuleView:
            before = await self._rule(wire, rule.name)
            refuse_code("rule", rule.name, None if before is None else before.source)
            await wire.fetch(self._sql["save_rule"], self._named(rule.name) | {"rule": text_of(rule)})
            [row] = await wire.fetch(self._sql["rule"], self._named(rule.name))
            after = rule_view(row)
            await self._audit.write(wire, by, rule_changed("save", rule.name, before, after))
            return after

        return await self._pool.transaction(work)

    async def pause_alert_rule(
        self, name: str, by: By, *, paused: bool, until: datetime | None = None
    ) -> RuleView | None:
        """Pause or resume a rule."""
        params: Params = {
            "paused": paused,
            "until": until if paused else None,
            "paused_by": storable(by.actor) if paused else None,
        }

        async def work(wire: Wire) -> RuleView | None:
            before = await self._rule(wire, name)
            if before is None:
                return None
            await wire.fetch(self._sql["pause_rule"], {**self._named(name), **params})
            after = await self._rule(wire, name)
            note = rule_changed("pause" if paused else "resume", name, before, after)
            await self._audit.write(wire, by, note)
            return after

        return await self._pool.transaction(work)

    async def delete_alert_rule(self, name: str, by: By) -> bool:
        """Delete a rule."""

        async def work(wire: Wire) -> bool:
            before = await self._rule(wire, name)
            if before is None:
                return False
            [(now,)] = await wire.fetch(self._sql["delete_rule"], self._named(name))
            await self._rows.end(wire, name, now)
            await self._audit.write(wire, by, rule_changed("delete", name, before, None))
            return True

        return await self._pool.transaction(work)

    async def alert_channels(self) -> list[ChannelRecord]:
        """All channels, by name."""
        return readable(await self._pool.rows(self._sql["channels"], self._since()), channel_record)

    async def save_alert_channel(self, channel: Channel, by: By) -> ChannelRecord:
        """Create or replace a channel."""

        async def work(wire: Wire) -> ChannelRecord:
            before = await self._channel(wire, channel.name)
            refuse_code("channel", channel.name, None if before is None else before.source)
            params = self._named(channel.name) | {"channel": text_of(channel)}
            await wire.fetch(self._sql["save_channel"], params)
            [row] = await wire.fetch(self._sql["channel"], self._named(channel.name))
            after = channel_record(row)
            await self._audit.write(wire, by, channel_changed("save", channel.name, before, after))
            return after

        return await self._pool.transaction(work)

    async def delete_alert_channel(self, name: str, by: By) -> bool:
        """Delete a channel."""

        async def work(wire: Wire) -> bool:
            before = await self._channel(wire, name)
            if before is None:
                return False
            await wire.fetch(self._sql["delete_channel"], self._named(name))
            await self._audit.write(wire, by, channel_changed("delete", name, before, None))
            return True

        return await self._pool.transaction(work)

    async def declare_alerts(
        self, rules: Sequence[AlertRule], channels: Sequence[Channel], budgets: Sequence[BudgetLimits]
    ) -> None:
        """Keep what code declares."""

        async def work(wire: Wire) -> None:  # in the order of names: workers that declare at once do not deadlock
            for rule in sorted(rules, key=lambda one: one.name):
                await wire.fetch(self._sql["declare_rule"], self._named(rule.name) | {"rule": text_of(rule)})
            for channel in sorted(channels, key=lambda one: one.name):
                params = self._named(channel.name) | {"channel": text_of(channel)}
                await wire.fetch(self._sql["declare_channel"], params)
            for budget in sorted(budgets, key=lambda one: one.name):
                params = self._named(budget.name) | {"limits": text_of(budget.limits)}
                await wire.fetch(self._sql["declare_budget"], params)

        await self._pool.transaction(work)

    async def budget_limits(self) -> list[BudgetLimits]:
        """The limits of budgets."""
        return budget_limits(await self._pool.rows(self._sql["budgets"], self._since()))

    async def _rule(self, wire: Wire, name: str) -> RuleView | None:
        rows = await wire.fetch(self._sql["rule"], self._named(name))
        return rule_view(rows[0]) if rows else None

    async def _channel(self, wire: Wire, name: str) -> ChannelRecord | None:
        rows = await wire.fetch(self._sql["channel"], self._named(name))
        return channel_record(rows[0]) if rows else None

    def _since(self) -> dict[str, object]:
        return {"now": self._clock.now() if self._clock else None, "kept": _CODE_KEPT}

    def _named(self, name: str) -> dict[str, object]:
        return {"name": name} | self._since()

"""Alerts as they are stored: rules, channels, alerts, notices.

One leader evaluates the rules. Two processes may believe that they lead at once, so the leader's writes are fenced: the
book of alerts has a version, and a page made from an older version changes nothing. One transaction writes a
page with its alerts, notices and delivery jobs: an alert is neither lost nor sent twice, even if the process crashes.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final, Protocol

from msgspec import Struct

from perdure.domain.alerts.alert import Alert, Delivery, Notice
from perdure.domain.alerts.channel import Channel, ChannelRecord
from perdure.domain.alerts.rule import AlertRule, RuleView
from perdure.domain.jobs.job import NewJob
from perdure.domain.operate.audit import By
from perdure.domain.schedule import Fire

ALERTS_KEPT: Final = timedelta(days=30)
"""How long ended alerts, and notices, are kept."""
CODE_KEPT: Final = timedelta(hours=1)
"""How long rules and channels of code are kept after their last declaration by a worker."""


class BudgetLimits(Struct, frozen=True):
    """The limits of a budget by window, as workers declare them."""

    name: str
    limits: tuple[tuple[timedelta, float], ...]


class RecentFailure(Struct, frozen=True, kw_only=True):
    """A group with recent failures, and its deaths in each hour."""

    fingerprint: str
    kind: str
    error_type: str
    message: str
    first_at: datetime
    last_at: datetime
    deaths: dict[datetime, int]


class AlertBook(Struct, frozen=True, kw_only=True):
    """The state that an evaluation starts from.

    `memory` is what the last evaluation wrote. `alerts` are open, or still have something to report. `said_at` are the
    times of each rule's notices since `said_since`. `deliveries` are in progress.
    """

    version: int
    memory: str
    now: datetime
    rules: tuple[RuleView, ...]
    channels: tuple[ChannelRecord, ...]
    alerts: tuple[Alert, ...]
    said_at: dict[str, tuple[datetime, ...]]
    deliveries: tuple[tuple[str, Delivery], ...] = ()  # with the id of the notice


class AlertPage(Struct, frozen=True, kw_only=True):
    """What one evaluation writes: all of it, or nothing if the book has moved on since `version`.

    `done` are alerts with nothing left to report. `jobs` deliver the notices. `lost` are deliveries whose jobs are
    dead: id of the notice, channel, error.
    """

    version: int
    memory: str
    alerts: tuple[Alert, ...] = ()
    done: tuple[str, ...] = ()
    notices: tuple[Notice, ...] = ()
    jobs: tuple[NewJob, ...] = ()
    lost: tuple[tuple[str, str, str], ...] = ()


class AlertFilter(Struct, frozen=True, kw_only=True):
    """A filter for alerts, newest first: those opened before `before` (time and id)."""

    rule: str | None = None
    open_only: bool = False
    before: tuple[datetime, str] | None = None


class AlertStore(Protocol):
    """Alerts. Commands are recorded in the audit trail in the same transaction."""

    async def alert_rules(self) -> list[RuleView]:
        """All rules, by name; those of code only while a worker declares them."""

    async def save_alert_rule(self, rule: AlertRule, by: By) -> RuleView:
        """Create a rule, or replace one made at run time; one declared in code raises ConflictError."""

    async def pause_alert_rule(
        self, name: str, by: By, *, paused: bool, until: datetime | None = None
    ) -> RuleView | None:
        """Pause a rule, until then or until it is resumed, or resume it; None: there is none."""

    async def delete_alert_rule(self, name: str, by: By) -> bool:
        """Delete a rule; its open alerts end without a notice. False: there is none."""

    async def alert_channels(self) -> list[ChannelRecord]:
        """All channels, by name; those of code only while a worker declares them."""

    async def save_alert_channel(self, channel: Channel, by: By) -> ChannelRecord:
        """Create a channel, or replace one made at run time; one declared in code raises ConflictError."""

    async def delete_alert_channel(self, name: str, by: By) -> bool:
        """Delete a channel; False: there is none."""

    async def declare_alerts(
        self, rules: Sequence[AlertRule], channels: Sequence[Channel], budgets: Sequence[BudgetLimits]
    ) -> None:
        """Store what code declares: it replaces rules and channels of these names that were made at run time.

        Pauses stay.
        """

    async def budget_limits(self) -> list[BudgetLimits]:
        """The limits of the budgets that workers declare, by name."""

    async def alert_book(self, said_since: timedelta) -> AlertBook:
        """The state that an evaluation starts from."""

    async def write_alerts(self, page: AlertPage) -> bool:
        """Write the results of an evaluation, unless another one has written since; returns whether it was written.

        Deletes expired alerts and notices, a batch at a time.
        """

    async def recent_failures(self, since: datetime, limit: int) -> list[RecentFailure]:
        """The groups that have failed since then, last first, with their deaths by hour from the hour of `since` on."""

    async def missed_fires(self, since: datetime, limit: int) -> list[Fire]:
        """The nominal times that were missed since then, newest first."""

    async def alerts(self, which: AlertFilter, limit: int) -> list[Alert]:
        """Alerts that match, the last to open first."""

    async def notices(self, limit: int, before: tuple[datetime, str] | None = None) -> list[Notice]:
        """The newest notices, with their deliveries."""

    async def notice(self, notice_id: str) -> Notice | None:
        """One notice."""

    async def add_notice(self, notice: Notice, jobs: Sequence[NewJob], by: By) -> None:
        """Store a notice that an operator sends, with the jobs that deliver it."""

    async def note_delivery(self, notice_id: str, channel: str, error: str | None) -> None:
        """Store the outcome of an attempt to deliver a notice; `error` None: the channel accepted it."""

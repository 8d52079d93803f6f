"""What an engine can do, in narrow protocols and the one that joins them."""

from __future__ import annotations

from typing import Protocol

from perdure.storage.claims import ClaimStore
from perdure.storage.effects import EffectStore
from perdure.storage.fleet.leaders import LeaderStore
from perdure.storage.fleet.signals import SignalStore
from perdure.storage.fleet.upkeep import UpkeepStore
from perdure.storage.fleet.workers import WorkerStore
from perdure.storage.flows import FlowStore
from perdure.storage.gates import GateStore
from perdure.storage.intake import BorrowingStore, IntakeStore
from perdure.storage.operate.alerts import AlertStore
from perdure.storage.operate.audit import AuditStore
from perdure.storage.operate.backups import BackupStore
from perdure.storage.operate.bulk import BulkStore
from perdure.storage.operate.commands import CommandStore
from perdure.storage.operate.diagnosis import DiagnosisStore
from perdure.storage.operate.event_log import EventLogStore
from perdure.storage.operate.failure_groups import FailureGroupStore
from perdure.storage.operate.insight import InsightStore
from perdure.storage.operate.kinds import KindStore
from perdure.storage.operate.statistics import StatisticStore
from perdure.storage.operate.tokens import TokenStore
from perdure.storage.operate.webhooks import WebhookStore
from perdure.storage.schedules import ScheduleStore
from perdure.storage.schema import SchemaStore
from perdure.storage.throttle import ThrottleStore


class Store(
    IntakeStore,
    BorrowingStore,
    ClaimStore,
    EffectStore,
    WorkerStore,
    UpkeepStore,
    InsightStore,
    CommandStore,
    BulkStore,
    AuditStore,
    SignalStore,
    SchemaStore,
    DiagnosisStore,
    ScheduleStore,
    LeaderStore,
    BackupStore,
    FlowStore,
    GateStore,
    ThrottleStore,
    KindStore,
    StatisticStore,
    TokenStore,
    FailureGroupStore,
    EventLogStore,
    WebhookStore,
    AlertStore,
    Protocol,
):
    """An engine: everything above on one object, bound to the event loop that opened it."""

    async def open(self) -> None:
        """Connect. Raises StoreUnavailable or StoreRefused with what to do about it."""

    async def close(self) -> None:
        """Finish what was begun and release every connection and thread."""

    def abandon(self) -> None:
        """Release every connection and thread of a store whose event loop is closed; blocks meanwhile."""

    def sibling(self) -> Store:
        """Another store on the same database with connections of its own, not yet open: for another thread's loop."""

"""Alerts that rules have raised, and the notices about them."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from msgspec import Struct

from perdure.domain.alerts.rule import AlertSeverity
from perdure.domain.jobs.ids import JobId


class Cause(Struct, frozen=True, kw_only=True):
    """One thing that a rule has found. `key` identifies it among the rule's causes, and stays the same while it lasts.

    `passes`: it happens and does not last, such as a death; `happened` is how often since the last look.
    """

    key: str
    title: str
    detail: str = ""
    path: str = "/"
    cli: str = ""
    passes: bool = False
    happened: int = 1


class Alert(Struct, frozen=True, kw_only=True):
    """A cause for as long as it lasts: open, then over.

    `count` is how often it happened. `told_at` and `told_count` are of the last notice. `told_end`: nothing is left to
    report about its end. One that `passes` is over when nothing has happened for a while; its end sends no notice.
    """

    id: str
    rule: str
    key: str
    severity: AlertSeverity
    title: str
    detail: str
    path: str
    cli: str
    opened_at: datetime
    last_at: datetime
    closed_at: datetime | None = None
    passes: bool = False
    count: int = 1
    told_at: datetime | None = None
    told_count: int = 0
    told_end: bool = False

    @property
    def is_open(self) -> bool:
        """Whether its cause lasts."""
        return self.closed_at is None


class NoticeSort(StrEnum):
    """The type of a notice."""

    ALERT = "alert"
    RECOVERY = "recovery"
    CHANNEL = "channel"  # another channel does not work, or works again
    TEST = "test"


class DeliveryState(StrEnum):
    """The state of a delivery through one channel."""

    PENDING = "pending"
    SENT = "sent"
    FAILED = "failed"  # its job is dead


class Delivery(Struct, frozen=True, kw_only=True):
    """The delivery of a notice through one channel: a job of its own."""

    channel: str
    job_id: JobId
    state: DeliveryState = DeliveryState.PENDING
    changed_at: datetime
    error: str | None = None


class Opening(Struct, frozen=True, kw_only=True):
    """An incident that a notice opens, or repeats. `ends`: it is resolved when its causes have ended."""

    key: str
    ends: bool


class Notice(Struct, frozen=True, kw_only=True):
    """One message. `alerts` is the number of alerts that it reports, `count` how often their causes happened.

    `opens` and `resolves` are for channels that keep incidents, such as PagerDuty. One that only resolves is sent to
    these alone.
    """

    id: str
    sort: NoticeSort
    rule: str | None
    severity: AlertSeverity
    title: str
    body: str
    path: str
    at: datetime
    alerts: int = 0
    count: int = 0
    keys: tuple[str, ...] = ()
    opens: tuple[Opening, ...] = ()
    resolves: tuple[str, ...] = ()
    deliveries: tuple[Delivery, ...] = ()

    @property
    def only_resolves(self) -> bool:
        """Whether it says nothing to people."""
        return bool(self.resolves) and not self.alerts

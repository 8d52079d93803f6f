"""Rules: what raises an alert, which channels get it, and how often."""

from __future__ import annotations

from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from msgspec import Struct

from perdure.domain.alerts.quiet import QuietHours

ALERT_KIND: Final = "perdure.alert"
ALERT_QUEUE: Final = "perdure-alerts"


class When(StrEnum):
    """What a rule looks for."""

    JOB_DIED = "job_died"  # a job went to the dead letters
    NEW_ERROR = "new_error"  # a failure of a fingerprint that was not seen before
    DEATHS = "deaths"  # at least `limit` jobs died `within` this time
    FAILURE_SHARE = "failure_share"  # at least this share of attempts failed `within` this time
    DEPTH = "depth"  # at least `limit` jobs of a queue are ready
    OLDEST = "oldest"  # the oldest ready job of a queue waits for at least `limit` seconds
    WAIT_P95 = "wait_p95"  # one job in twenty waited for at least `limit` seconds
    SCHEDULE_MISSED = "schedule_missed"  # a schedule is overdue, or has missed a time
    BUDGET = "budget"  # at least this share of a budget is spent
    BREAKER_OPENED = "breaker_opened"
    WORKER_LOST = "worker_lost"
    NO_WORKER = "no_worker"  # a queue has ready jobs and no worker
    DOCTOR = "doctor"  # `perdure doctor` finds a problem


class AlertSeverity(StrEnum):
    """The severity of an alert; every notice has it."""

    INFO = "info"
    WARNING = "warning"
    CRITICAL = "critical"


class Grouping(StrEnum):
    """What `throttle` applies to."""

    CAUSE = "cause"  # a notice for each cause, such as a queue
    RULE = "rule"  # one notice for all causes of a rule


class AlertRule(Struct, frozen=True, kw_only=True):
    """One rule, checked; `perdure.alerts.rule` makes it.

    `queue`, `kind` and `about` choose what it watches; `about` is the name of a schedule, budget, breaker or worker.
    `limit` is in the unit of its `when`: jobs, seconds or a share from 0 to 1. A cause must last for `lasting` before
    a notice is sent. `least` is how many attempts a share needs to count. Notices of one cause are `throttle` apart.
    """

    name: str
    when: When
    to: tuple[str, ...]
    queue: str | None = None
    kind: str | None = None
    about: str | None = None
    limit: float | None = None
    within: timedelta | None = None
    lasting: timedelta = timedelta(0)
    least: int = 20
    severity: AlertSeverity = AlertSeverity.WARNING
    throttle: timedelta = timedelta(minutes=10)
    group: Grouping = Grouping.CAUSE
    quiet: tuple[QuietHours, ...] = ()
    recovery: bool = True


class Source(StrEnum):
    """Where a rule or channel comes from."""

    CODE = "code"  # declared by an app; only its pause can be changed at run time
    DESK = "desk"  # made at run time


class RuleView(Struct, frozen=True, kw_only=True):
    """A stored rule.

    `declared_at` is when a worker last said that its code has the rule. `paused_until` None: until it is resumed.
    """

    rule: AlertRule
    source: Source
    created_at: datetime
    changed_at: datetime
    declared_at: datetime | None = None
    paused_at: datetime | None = None
    paused_until: datetime | None = None
    paused_by: str | None = None

    def is_paused(self, now: datetime) -> bool:
        """Whether it is paused now."""
        return self.paused_at is not None and (self.paused_until is None or self.paused_until > now)

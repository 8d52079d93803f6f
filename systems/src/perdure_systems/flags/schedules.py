"""Schedules as people see them: made from a request, and read from jobs.

A schedule is one job, and a second one if a cache must be invalidated. Both count as one: it is `applied` only if
neither is failing, and its retries are those of both.
"""

from __future__ import annotations

import secrets
from datetime import UTC, datetime
from enum import StrEnum
from typing import Annotated, Any, Final

import msgspec

from perdure import Call, JobView
from perdure_systems.flags.jobs import STATUS_OF, apply
from perdure_systems.flags.policy import STANDARD, RetryPolicy
from perdure_systems.flags.records import Updates
from perdure_systems.flags.settings import FEWEST_RETRIES, MOST_RETRIES, max_retries

PENDING, APPLIED, FAILED, CANCELLED = "pending", "applied", "failed", "cancelled"
_LATEST: Final = datetime(9999, 1, 1, tzinfo=UTC)  # retries and other zones must not lead past the last year
_LEVELS: Final = {"high": 3, "normal": 5, "low": 7}


class Priority(StrEnum):
    """How urgent a schedule is among those that have not failed yet. Retries go before all of them."""

    HIGH = "high"
    NORMAL = "normal"
    LOW = "low"


class NewSchedule(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """The body of a request for a schedule. `max_retries` is short for a policy with nothing else in it."""

    updates: Updates
    scheduled_at: Annotated[datetime, msgspec.Meta(tz=True)]
    max_retries: Annotated[int, msgspec.Meta(ge=FEWEST_RETRIES, le=MOST_RETRIES)] | None = None
    retry_policy: RetryPolicy | None = None
    priority: Priority = Priority.NORMAL

    def problem(self, now: datetime) -> tuple[str, str] | None:
        """The invalid field, and why; None: all is well."""
        if self.updates.is_empty:
            return "updates", "updates must name at least one change: enabled, rollout"
        if self.scheduled_at >= _LATEST:
            return "scheduledAt", f"scheduledAt must lie before the year 9999, got {self.scheduled_at.isoformat()}"
        if self.scheduled_at <= now:
            return "scheduledAt", f"scheduledAt must lie in the future, got {self.scheduled_at.isoformat()}"
        if self.max_retries is not None and self.retry_policy is not None:
            return "maxRetries", "maxRetries and retryPolicy are both given: choose one"
        return None

    @property
    def policy(self) -> RetryPolicy:
        """The policy that the schedule is to have."""
        if self.retry_policy is not None:
            return self.retry_policy
        return RetryPolicy(max_retries() if self.max_retries is None else self.max_retries)


class Schedule(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The current state of a schedule. All times are in UTC.

    `flag_changed_at` is when the flag was changed, even while a cache is not invalidated yet. `needs_operator`: it is
    retried only if a person requeues it.
    """

    id: str
    flag_key: str
    updates: Updates
    scheduled_at: datetime
    status: str
    retry_count: int
    max_retries: int
    next_retry_at: datetime | None
    last_error: str | None
    applied_at: datetime | None
    created_by: str
    created_at: datetime
    cancelled_by: str | None
    cancelled_at: datetime | None
    flag_changed_at: datetime | None
    needs_operator: bool
    priority: str
    retry_policy: RetryPolicy


class _Arguments(msgspec.Struct, frozen=True):
    flag_key: str
    updates: Updates
    scheduled_at: datetime
    created_by: str
    policy: RetryPolicy = STANDARD


def call_for(flag_key: str, new: NewSchedule, by: str) -> tuple[str, Call[int]]:
    """The id of a new schedule and the job that it is."""
    schedule_id, policy, due_at = f"sch_{secrets.token_hex(8)}", new.policy, new.scheduled_at.astimezone(UTC)
    prepared = apply.using(
        run_at=due_at,
        ref=schedule_id,
        priority=_LEVELS[new.priority],
        tags=(tag_of(flag_key),),
        meta={"scheduleId": schedule_id, "flagKey": flag_key, "maxRetries": policy.max_retries, "as": new.priority},
        retry=policy.retry(),
    )
    return schedule_id, prepared.call(flag_key, new.updates, due_at, by, policy)


def schedule_of(job: JobView, cache: JobView | None = None) -> Schedule:
    """The schedule that a job is, together with the job that invalidates the cache after it, if there is one."""
    given = msgspec.convert(job.arguments, _Arguments)
    failing, status = _failing(job, cache), status_of(job, cache)
    is_over = failing.state in {"dead", "succeeded", "cancelled"}
    retries = job.failures + (0 if cache is None else cache.failures) - (failing.state == "dead")
    return Schedule(
        id=job.ref or job.id,
        flag_key=given.flag_key,
        updates=given.updates,
        scheduled_at=given.scheduled_at,
        status=status,
        retry_count=min(retries, given.policy.max_retries),
        max_retries=given.policy.max_retries,
        next_retry_at=failing.due_at if status == FAILED and not is_over else None,
        last_error=failing.last_error,
        applied_at=job.finished_at if status == APPLIED else None,
        created_by=given.created_by,
        created_at=job.created_at,
        cancelled_by=job.cancelled_by if status == CANCELLED else None,
        cancelled_at=job.finished_at if status == CANCELLED else None,
        flag_changed_at=job.finished_at if job.state == "succeeded" else None,
        needs_operator=failing.state == "dead",
        priority=_meta(job).get("as", Priority.NORMAL.value),
        retry_policy=given.policy,
    )


def status_of(job: JobView, cache: JobView | None = None) -> str:
    """One of pending, applied, failed, cancelled. A retry that is due or running has failed and not yet been mended."""
    failing = _failing(job, cache)
    word = STATUS_OF[failing.state]
    return FAILED if word == PENDING and failing.failures else word


def tag_of(flag_key: str) -> str:
    """The tag of all jobs of a flag."""
    return f"flag:{flag_key}"


def _failing(job: JobView, cache: JobView | None) -> JobView:
    """The job by which the schedule is judged: the invalidation, once that has failed and not been mended."""
    is_failing = cache is not None and cache.failures > 0 and STATUS_OF[cache.state] in {PENDING, FAILED}
    return cache if cache is not None and is_failing else job


def _meta(job: JobView) -> dict[str, Any]:
    return msgspec.json.decode(job.meta, type=dict[str, Any]) if job.meta else {}

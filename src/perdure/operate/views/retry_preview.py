"""The future attempts of a job or a kind, if every one fails (B14)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from msgspec import Struct

from perdure.domain.jobs.job import JobView
from perdure.domain.jobs.states import ACTIVE, JobState
from perdure.errors import ArgumentError, NotFoundError
from perdure.kinds.kind import Registry
from perdure.policy.own_settings import read_settings
from perdure.policy.retries.preview import PlannedAt, preview, preview_by_error
from perdure.policy.retries.retry import Retry, read_policy


class RetryPlan(Struct, frozen=True):
    """Future attempts, in order. `more`: others follow those that are shown."""

    plan: tuple[PlannedAt, ...]
    more: bool


class RetryPreview(Struct, frozen=True):
    """The future attempts, and those for errors with their own rule, by the name of the error."""

    plan: tuple[PlannedAt, ...]
    more: bool
    by_error: Mapping[str, RetryPlan]


def preview_of_kind(kinds: Registry, name: str, now: datetime, limit: int) -> RetryPreview:
    """The attempts of a job of this kind, enqueued now; raises NotFoundError."""
    policy = policy_of(kinds, name)
    return _joined(preview(policy, now, most=limit), preview_by_error(policy, now, most=limit))


def preview_of_job(kinds: Registry | None, job: JobView, now: datetime, limit: int) -> RetryPreview | None:
    """The future attempts of a job, from its next one on; none if it has ended.

    None: its policy is in code that this process has not loaded (`kinds` is None).
    """
    policy = read_settings(job.settings).retry
    if policy is None:
        if kinds is None:
            return None
        policy = policy_of(kinds, job.kind)
    if job.state not in ACTIVE:
        return RetryPreview((), more=False, by_error={})
    due = (job.started_at if job.state is JobState.RUNNING else max(job.due_at or now, now)) or now
    usual = preview(policy, job.since, job.failures, due=due, most=limit)
    by_error = preview_by_error(policy, job.since, job.failures, due=due, most=limit)
    return _joined(_numbered(usual, job), {name: _numbered(plan, job) for name, plan in by_error.items()})


def policy_of(kinds: Registry, name: str) -> Retry:
    """The retry policy that a kind declares; raises NotFoundError."""
    if name not in kinds:
        known = ", ".join(sorted(kinds)) or "none"
        raise NotFoundError(f"the app declares no kind {name!r}; declared are: {known}")
    try:
        return read_policy(kinds[name].retry)
    except Exception as error:
        raise ArgumentError("retry", f"of kind {name!r} cannot be read: {type(error).__name__}: {error}") from error


def _numbered(plan: Sequence[PlannedAt], job: JobView) -> list[PlannedAt]:
    """Number the attempts as surfaces show them: crashed ones count, although the policy does not count them."""
    return [PlannedAt(step.attempt + job.crashes, step.earliest, step.latest, step.then) for step in plan]


def _joined(usual: Sequence[PlannedAt], by_error: Mapping[str, Sequence[PlannedAt]]) -> RetryPreview:
    rules = {name: RetryPlan(tuple(plan), _has_more(plan)) for name, plan in by_error.items()}
    return RetryPreview(tuple(usual), _has_more(usual), rules)


def _has_more(plan: Sequence[PlannedAt]) -> bool:
    return bool(plan) and plan[-1].then is None

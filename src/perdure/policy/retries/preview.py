"""The future attempts of a job, with their dates (B14)."""

from __future__ import annotations

from datetime import datetime

from msgspec import Struct
from msgspec.structs import replace

from perdure.domain.jobs.states import Reason
from perdure.errors import ArgumentError
from perdure.policy.retries.retry import Retry


class PlannedAt(Struct, frozen=True):
    """One attempt of a job: its number, and when it begins at the earliest and at the latest.

    `then` is why the job is dead if this attempt fails too; None: it is retried.
    """

    attempt: int
    earliest: datetime
    latest: datetime
    then: Reason | None = None


def preview(
    policy: Retry,
    since: datetime,
    failures: int = 0,
    *,
    due: datetime | None = None,
    error: type[BaseException] | None = None,
    most: int = 20,
) -> list[PlannedAt]:
    """When each attempt of a job first due at `since` begins, if every one fails at once, with this error.

    A job that has failed before is followed from its next attempt on, which begins at `due`, or, if that is not given,
    as if the earlier attempts had failed at once too. At most so many are listed.
    """
    for field, instant in (("since", since), ("due", due)):
        if instant is not None and instant.tzinfo is None:
            raise ArgumentError(field, f"must have a time zone, such as UTC, got {instant!r}")
    elapsed = None if due is None else due - since
    plan = policy.preview(most, failures=failures, elapsed=elapsed, error=error)
    return [PlannedAt(step.attempt, since + step.earliest, since + step.latest, step.then) for step in plan]


def preview_by_error(
    policy: Retry, since: datetime, failures: int = 0, *, due: datetime | None = None, most: int = 20
) -> dict[str, list[PlannedAt]]:
    """The same for each type of error with its own rule, by the name of the type."""
    plans = {}
    for name, rule in policy.rules.items():
        if rule is None:
            [only] = preview(policy, since, failures, due=due, most=1)
            plans[name] = [replace(only, then=Reason.PERMANENT)]
        else:
            plans[name] = preview(rule, since, failures, due=due, most=most)
    return plans

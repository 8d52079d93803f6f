"""What an outcome means for its job: the one place that weighs an outcome against the job's policy.

The worker asks here after every attempt, the rescuer after a crash. Moves that no policy has a say in are built where
they arise, by the constructors of `domain.transition`: a claim that is given back or held back before it starts, a
result that the store refuses, and the corrections of an engine, which alone sees what else has happened to the job.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from msgspec import Struct

from perdure.domain.duration import format_duration
from perdure.domain.jobs.job import Claim
from perdure.domain.jobs.outcome import (
    BadArguments,
    Cancelled,
    Crashed,
    Done,
    Failed,
    Failure,
    Gated,
    Outcome,
    Parked,
    Paused,
    Permanent,
    Released,
    Snoozed,
    StillPending,
    UnknownKind,
)
from perdure.domain.jobs.states import GATED, Reason
from perdure.domain.jobs.transition import (
    Transition,
    cancelled,
    crashed,
    crashed_for_good,
    died,
    parked,
    paused,
    released,
    retrying,
    succeeded,
    unhandled,
    waiting,
)
from perdure.policy.failures import noted
from perdure.policy.retries.jitter import Randomness
from perdure.policy.retries.retry import DEFAULT_RETRY, Retry, RetrySource, read_policy

_NOTHING: Final = timedelta(0)


class MissingHandler(StrEnum):
    """What becomes of a job of a kind that the worker does not know."""

    COMPLETE = "complete"  # closed as done, with a warning
    DEFER = "defer"  # put off, for a worker that knows it; dead only after `unknown_kind_for`
    DEAD = "dead"  # to the dead letters at once


class Limits(Struct, frozen=True, kw_only=True):
    """The engine's own limits, beside the policy of each job."""

    missing_handler: MissingHandler = MissingHandler.DEFER
    unknown_kind_for: timedelta = timedelta(days=1)
    unknown_kind_wait: tuple[timedelta, timedelta] = (timedelta(seconds=10), timedelta(seconds=30))


DEFAULT_LIMITS: Final = Limits()


def decide(  # noqa: C901, PLR0911, PLR0912 - one case for each outcome, and no other place to look
    claim: Claim,
    outcome: Outcome,
    retry: RetrySource | None,
    now: datetime,
    random: Randomness,
    limits: Limits = DEFAULT_LIMITS,
) -> Transition:
    """Say where a job goes after this outcome.

    `now` is a time by the clock that gave `claim.since`. Without a `retry` the engine's default stands in; it is looked
    at only after a failure, so that a rescuer, who knows no handlers, needs none.
    """
    match outcome:
        case Done():
            return succeeded(claim, outcome.result, outcome.warnings)
        case Failed():
            return _failed(claim, outcome, retry, now, random)
        case Permanent():
            return died(claim, Reason.PERMANENT, outcome.failure)
        case BadArguments():
            return died(claim, Reason.BAD_ARGUMENTS, outcome.failure)
        case StillPending():
            return waiting(claim, Reason.STILL_PENDING, max(outcome.after, _NOTHING))
        case Snoozed():
            return waiting(claim, Reason.SNOOZED, max(outcome.after, _NOTHING))
        case Parked():
            first, others = (outcome.awaits[0], outcome.awaits[1:]) if outcome.awaits else (None, ())
            wait = None if outcome.after is None else max(outcome.after, _NOTHING)
            if first is None and Reason(outcome.reason) in GATED:  # a gate before a step
                return paused(claim, Reason(outcome.reason), wait, outcome.note)
            return parked(claim, Reason(outcome.reason), wait, first, outcome.note, others)
        case Gated():
            return paused(claim, Reason(outcome.reason), outcome.after, outcome.note)
        case Released():
            if outcome.after is None or outcome.after <= _NOTHING:
                return released(claim)
            return paused(claim, Reason.RELEASED, outcome.after)
        case UnknownKind():
            return _unknown(claim, now, random, limits)
        case Paused():
            until = None if outcome.until is None else max(outcome.until, _NOTHING)
            return paused(claim, Reason.PAUSED, until, outcome.why)
        case Cancelled():
            return cancelled(claim, outcome.why or None)
        case Crashed():
            last = claim.crashes + 1 >= claim.crash_limit
            return (crashed_for_good if last else crashed)(claim, outcome.failure)


def _failed(claim: Claim, outcome: Failed, source: RetrySource | None, now: datetime, random: Randomness) -> Transition:
    retry, failure = _policy(source, outcome.failure)
    rule = retry.for_error(outcome.kinds)
    if rule is None:
        return died(claim, Reason.PERMANENT, failure)
    limit = rule.attempts or 0
    if rule.is_last(claim.failures):
        return died(claim, Reason.EXHAUSTED, failure, limit)
    wait = rule.wait(claim.failures, now - claim.since, random, outcome.retry_after)
    if wait is None:
        return died(claim, Reason.OUT_OF_TIME, failure, limit)
    reason = Reason.TIMED_OUT if outcome.timed_out else Reason.FAILED
    return retrying(claim, reason, failure, max(wait, _NOTHING), limit, rule.priority)


def _policy(source: RetrySource | None, failure: Failure) -> tuple[Retry, Failure]:
    """Read the policy. One that cannot be read must not strand the job: the default holds, and the record says so."""
    if source is None:
        return DEFAULT_RETRY, failure
    try:
        return read_policy(source), failure
    except Exception as broken:  # noqa: BLE001 - a function of the user's own
        return DEFAULT_RETRY, noted(failure, "its retry setting could not be read, so the default holds", broken)


def _unknown(claim: Claim, now: datetime, random: Randomness, limits: Limits) -> Transition:
    missing = f"no handler for kind {claim.kind!r}"
    if limits.missing_handler is MissingHandler.COMPLETE:
        return succeeded(claim, None, (f"{missing}: closed without a run, as the settings say",))
    if limits.missing_handler is MissingHandler.DEAD:
        return unhandled(claim, Failure("UnknownKind", f"{missing} in this worker"))
    if claim.unknown_since is not None and now - claim.unknown_since > limits.unknown_kind_for:
        span = format_duration(limits.unknown_kind_for)
        return unhandled(claim, Failure("UnknownKind", f"{missing} in any worker that looked, for more than {span}"))
    low, high = limits.unknown_kind_wait
    wait = timedelta(seconds=random.uniform(low.total_seconds(), high.total_seconds()))
    return paused(claim, Reason.UNKNOWN_KIND, wait, missing)

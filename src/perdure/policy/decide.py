"""Turns what happened to a claim into a transition: the one place that does.

`decide` weighs the outcome of an attempt against the job's policy. The worker asks it after every attempt, the rescuer
after a crash. The functions below it build the moves in which no policy has a say: a claim that is given back or put
off, a record that the store refuses, and the corrections of an engine, which alone sees what else happened to the job.
All of them use the constructors of `domain.jobs.transition`; no other module does.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from msgspec import Struct

from perdure.domain.duration import format_duration
from perdure.domain.jobs.ids import JobId
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
from perdure.domain.jobs.states import FINAL, GATED, Reason
from perdure.domain.jobs.transition import (
    Transition,
    arrived,
    called_off,
    cancelled,
    crashed,
    crashed_for_good,
    died,
    of_parent,
    parked,
    past_gates,
    paused,
    released,
    retrying,
    returning,
    succeeded,
    unhandled,
    waiting,
)
from perdure.policy.consequences import HELD_KEY_WAIT
from perdure.policy.failures import MESSAGE_LIMIT_CHARACTERS, noted, storable
from perdure.policy.retries.jitter import Randomness
from perdure.policy.retries.retry import DEFAULT_RETRY, Retry, RetrySource, read_policy

_NOTHING: Final = timedelta(0)


class MissingHandler(StrEnum):
    """What happens to a job of a kind that the worker does not know."""

    COMPLETE = "complete"  # closed as done, with a warning
    DEFER = "defer"  # retried later, for a worker that knows it; dead only after `unknown_kind_for`
    DEAD = "dead"  # to the dead letters at once


class Limits(Struct, frozen=True, kw_only=True):
    """The engine's own limits, beside the policy of each job."""

    missing_handler: MissingHandler = MissingHandler.DEFER
    unknown_kind_for: timedelta = timedelta(days=1)
    unknown_kind_wait: tuple[timedelta, timedelta] = (timedelta(seconds=10), timedelta(seconds=30))


DEFAULT_LIMITS: Final = Limits()


def decide(
    claim: Claim,
    outcome: Outcome,
    retry: RetrySource | None,
    now: datetime,
    random: Randomness,
    limits: Limits = DEFAULT_LIMITS,
    *,
    has_children: bool = False,
    start_counts: bool = False,
) -> Transition:
    """Decide where a job goes after this outcome.

    `now` is a time by the clock that gave `claim.since`. Without a `retry` the engine's default applies; it is used
    only after a failure, so that a rescuer, which knows no handlers, needs none. `has_children`: the attempt has
    spawned some. `start_counts`: its start counts at its gates, so that the job does not ask again when it comes back
    without having failed.
    """
    move = _weigh(claim, outcome, retry, now, random, limits)
    if has_children:
        move = of_parent(move)
    if start_counts and move.failure is None and move.to not in FINAL:
        move = past_gates(move)
    return move


def _weigh(  # noqa: C901, PLR0911, PLR0912 - one case for each outcome, and no other place to look
    claim: Claim,
    outcome: Outcome,
    retry: RetrySource | None,
    now: datetime,
    random: Randomness,
    limits: Limits,
) -> Transition:
    match outcome:
        case Done():
            return finish(claim, outcome)
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


def finish(claim: Claim, done: Done) -> Transition:
    """Close a job whose attempt succeeded: what `decide` does then, without asking for a policy or the time."""
    return succeeded(claim, done.result, done.warnings)


def give_back(claim: Claim, *, has_passed: bool = False) -> Transition:
    """Return a claim to its queue at no cost. `has_passed`: its start has passed the job's gates, and counts."""
    return released(claim, has_passed=has_passed)


def put_off(claim: Claim, wait: timedelta, why: str, *, has_passed: bool = False) -> Transition:
    """Return a claim at no cost, to be ready again after `wait`."""
    move = paused(claim, Reason.RELEASED, wait, storable(why, MESSAGE_LIMIT_CHARACTERS))
    return past_gates(move) if has_passed else move


def refuse_record(move: Transition, why: str) -> Transition:
    """Make a job dead because the store refuses to record the end of its attempt."""
    message = storable(
        f"the end of the attempt ({move.reason.value}) could not be recorded: {why}", MESSAGE_LIMIT_CHARACTERS
    )
    return died(move.claim, Reason.PERMANENT, Failure("RecordRefused", message))


def wait_for_key(claim: Claim, note: str | None = None) -> Transition:
    """Hold a job back because another one holds its unique key."""
    return paused(claim, Reason.KEY_HELD, HELD_KEY_WAIT, note)


def return_later(crash: Transition, wait: timedelta) -> Transition:
    """Let a crashed job be ready again only after `wait`."""
    return returning(crash, wait)


def wake_if_there(
    move: Transition, *, events: Collection[str | None], families: Collection[tuple[JobId, str | None]]
) -> Transition:
    """Make a job ready at once if what it is to wait for is there already: one of these events, or settled families."""
    awaited = move.all_awaits
    if any(thing.event in events for thing in awaited):
        return arrived(move, Reason.EVENT_CAME)
    if any((move.claim.job_id, thing.family) in families for thing in awaited):
        return arrived(move, Reason.CHILDREN_SETTLED)
    return move


def cancel_instead(move: Transition, why: str | None = None) -> Transition:
    """Cancel a job that was to come back, because a cancellation was asked for while it ran."""
    return move if move.to in FINAL else called_off(move, why)


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
    """Read the policy. A policy that cannot be read must not strand the job: the default applies, and is recorded."""
    if source is None:
        return DEFAULT_RETRY, failure
    try:
        return read_policy(source), failure
    except Exception as broken:  # noqa: BLE001 - a function of the user's own
        return DEFAULT_RETRY, noted(failure, "its retry setting could not be read, so the default applies", broken)


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

"""The states of a job and every legal move between them.

A state has a table behind it: engines keep a job in exactly one *place* (parked, ready, lease or finished), and the
state says why it is there. ``MOVES`` is the whole state machine; ``docs/reference/states.md`` is generated from it, and
``Transition`` refuses every move of a running job that is not in it.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class JobState(StrEnum):
    """The state of a job."""

    SCHEDULED = "scheduled"  # waits for its time
    READY = "ready"  # waits for a worker
    RUNNING = "running"  # held by one claim of one worker
    RETRYING = "retrying"  # failed, waits for its next attempt
    WAITING = "waiting"  # parked by its handler: snoozed, polling, or waiting for children or an event
    PAUSED = "paused"  # held back from outside: by a gate, an operator, or a missing handler
    SUCCEEDED = "succeeded"  # done, perhaps with warnings
    DEAD = "dead"  # failed for good; an operator may requeue it
    CANCELLED = "cancelled"  # cancelled before it was done


class Reason(StrEnum):
    """Why a job made its last move; recorded with every move."""

    ENQUEUED = "enqueued"
    DUE = "due"
    CLAIMED = "claimed"
    DONE = "done"
    DONE_WITH_WARNINGS = "done with warnings"
    FAILED = "failed"
    TIMED_OUT = "timed out"
    EXHAUSTED = "attempts exhausted"
    OUT_OF_TIME = "time limit over all attempts passed"
    PERMANENT = "permanent failure"
    BAD_ARGUMENTS = "arguments do not fit the handler"
    CRASHED = "process crashed"
    CRASH_LIMIT = "crash limit reached"
    SNOOZED = "snoozed"
    STILL_PENDING = "still pending"
    SLEEPING = "sleeping"
    STEP_FAILED = "step failed"
    AWAITING_EVENT = "waiting for an event"
    AWAITING_CHILDREN = "waiting for children"
    EVENT_CAME = "event came"
    CHILDREN_SETTLED = "children settled"
    RELEASED = "released"
    UNKNOWN_KIND = "no handler for this kind"
    KEY_HELD = "unique key held by another job"
    PAUSED = "paused"
    RATE_LIMITED = "rate limited"
    BUDGET_EXCEEDED = "budget exceeded"
    CONCURRENCY_REACHED = "concurrency limit reached"
    BREAKER_OPEN = "circuit breaker open"
    ON_HOLD = "on hold"
    RESUMED = "resumed"
    CANCELLED = "cancelled"
    REQUEUED = "requeued"
    RUN_NOW = "run now"


FINAL: Final = frozenset({JobState.SUCCEEDED, JobState.DEAD, JobState.CANCELLED})
PARKED: Final = frozenset({JobState.SCHEDULED, JobState.RETRYING, JobState.WAITING, JobState.PAUSED})
ACTIVE: Final = frozenset(JobState) - FINAL
GATED: Final = frozenset(
    {Reason.RATE_LIMITED, Reason.BUDGET_EXCEEDED, Reason.CONCURRENCY_REACHED, Reason.BREAKER_OPEN, Reason.ON_HOLD}
)
FAULTS: Final = frozenset({Reason.FAILED, Reason.TIMED_OUT})
"""Reasons after which a returning job loses its place in line: its new place follows from its new due time."""

_S = JobState
_R = Reason

MOVES: Final[dict[tuple[JobState | None, JobState], frozenset[Reason]]] = {
    (None, _S.READY): frozenset({_R.ENQUEUED}),
    (None, _S.SCHEDULED): frozenset({_R.ENQUEUED}),
    (_S.SCHEDULED, _S.READY): frozenset({_R.DUE, _R.RUN_NOW}),
    (_S.RETRYING, _S.READY): frozenset({_R.DUE, _R.RUN_NOW}),
    (_S.WAITING, _S.READY): frozenset({_R.DUE, _R.RUN_NOW, _R.EVENT_CAME, _R.CHILDREN_SETTLED}),
    (_S.PAUSED, _S.READY): frozenset({_R.DUE, _R.RUN_NOW, _R.RESUMED}),
    (_S.READY, _S.RUNNING): frozenset({_R.CLAIMED}),
    (_S.RUNNING, _S.SUCCEEDED): frozenset({_R.DONE, _R.DONE_WITH_WARNINGS}),
    (_S.RUNNING, _S.READY): frozenset(
        {_R.FAILED, _R.TIMED_OUT, _R.CRASHED, _R.RELEASED, _R.EVENT_CAME, _R.CHILDREN_SETTLED}
    ),
    (_S.RUNNING, _S.RETRYING): frozenset({_R.FAILED, _R.TIMED_OUT, _R.CRASHED}),
    (_S.RUNNING, _S.WAITING): frozenset(
        {_R.SNOOZED, _R.STILL_PENDING, _R.SLEEPING, _R.STEP_FAILED, _R.AWAITING_EVENT, _R.AWAITING_CHILDREN}
    ),
    (_S.RUNNING, _S.PAUSED): frozenset({_R.PAUSED, _R.UNKNOWN_KIND, _R.RELEASED, _R.KEY_HELD}) | GATED,
    (_S.RUNNING, _S.DEAD): frozenset(
        {_R.EXHAUSTED, _R.OUT_OF_TIME, _R.PERMANENT, _R.BAD_ARGUMENTS, _R.CRASH_LIMIT, _R.UNKNOWN_KIND}
    ),
    (_S.RUNNING, _S.CANCELLED): frozenset({_R.CANCELLED}),
    (_S.SCHEDULED, _S.CANCELLED): frozenset({_R.CANCELLED}),
    (_S.READY, _S.CANCELLED): frozenset({_R.CANCELLED}),
    (_S.RETRYING, _S.CANCELLED): frozenset({_R.CANCELLED}),
    (_S.WAITING, _S.CANCELLED): frozenset({_R.CANCELLED}),
    (_S.PAUSED, _S.CANCELLED): frozenset({_R.CANCELLED}),
    (_S.READY, _S.SCHEDULED): frozenset({_R.ENQUEUED}),  # displaced by a new job with the same unique key
    (_S.SCHEDULED, _S.PAUSED): frozenset({_R.KEY_HELD}),
    (_S.RETRYING, _S.PAUSED): frozenset({_R.KEY_HELD}),
    (_S.WAITING, _S.PAUSED): frozenset({_R.KEY_HELD}),
    (_S.READY, _S.PAUSED): frozenset({_R.KEY_HELD}),
    (_S.SUCCEEDED, _S.READY): frozenset({_R.REQUEUED}),
    (_S.DEAD, _S.READY): frozenset({_R.REQUEUED}),
    (_S.CANCELLED, _S.READY): frozenset({_R.REQUEUED}),
}


def is_legal(before: JobState | None, after: JobState, reason: Reason) -> bool:
    """Whether a job may go from `before` (None: it is new) to `after` for this reason."""
    return reason in MOVES.get((before, after), frozenset())

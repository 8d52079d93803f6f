"""The decision about one attempt, ready for an engine to write.

The constructors below build every transition: each names the move and its reason. `Transition` itself refuses a move
that is not in ``MOVES``, so an illegal one never reaches an engine. All times are waits relative to the database's
clock.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from perdure.domain.flows.flow import Awaits
from perdure.domain.jobs.job import Claim
from perdure.domain.jobs.outcome import Failure
from perdure.domain.jobs.states import MOVES, JobState, Reason

_MOVES_OF_A_CLAIM: Final = frozenset(
    (after, reason) for (before, after), reasons in MOVES.items() if before is JobState.RUNNING for reason in reasons
)

_SUCCEEDED: Final = JobState.SUCCEEDED  # members of an enum are slow to look up, and each job needs these
_DONE: Final = Reason.DONE


class Transition(Struct, frozen=True, gc=False):
    """Where a claimed job goes next, and why.

    `wait` None on a parked state means: until an operator resumes it. `failure` not None makes an attempt record.
    `failures` and `crashes` are the counts after the move. `limit` is the number of attempts that the rule for this
    failure allows, 0 for no limit; None: no rule was applied.
    """

    claim: Claim
    to: JobState
    reason: Reason
    failures: int
    crashes: int
    wait: timedelta | None = None
    failure: Failure | None = None
    result: str | None = None
    warnings: tuple[str, ...] = ()
    note: str | None = None
    awaits: Awaits | None = None  # what a waiting job waits for besides the time
    also: tuple[Awaits, ...] = ()  # and at the same time
    is_parent: bool = False  # the attempt has spawned children
    has_passed: bool = False  # the attempt has passed its gates, and need not pass them again when it comes back
    limit: int | None = None
    priority: int | None = None  # the job's new priority; None: unchanged

    def __post_init__(self) -> None:
        """Refuse a move that a running job cannot make."""
        if (self.to, self.reason) not in _MOVES_OF_A_CLAIM:
            raise ValueError(
                f"job {self.claim.job_id}: no move from running to {self.to} with the reason {self.reason!r}; "
                "MOVES in perdure.domain.jobs.states holds the legal moves"
            )

    @property
    def all_awaits(self) -> tuple[Awaits, ...]:
        """Everything that the job waits for; the first to arrive wakes it."""
        if self.awaits is None or self.to is not JobState.WAITING:
            return ()
        return (self.awaits, *self.also)

    @property
    def passes(self) -> str | None:
        """The start to store as the one that has passed the job's gates; None: store nothing."""
        return self.claim.start if self.has_passed and not self.claim.has_passed else None


def succeeded(claim: Claim, result: str | None, warnings: tuple[str, ...]) -> Transition:
    """The job succeeded; its count of failures is kept, so that the record shows the attempt."""
    reason = Reason.DONE_WITH_WARNINGS if warnings else _DONE
    return Transition(claim, _SUCCEEDED, reason, claim.failures, claim.crashes, result=result, warnings=warnings)


def retrying(
    claim: Claim,
    reason: Reason,
    failure: Failure,
    wait: timedelta,
    limit: int | None = None,
    priority: int | None = None,
) -> Transition:
    """The attempt failed and is retried after `wait`; without a wait the job is ready at once."""
    to = JobState.RETRYING if wait > timedelta(0) else JobState.READY
    return Transition(
        claim,
        to,
        reason,
        claim.failures + 1,
        claim.crashes,
        wait=wait,
        failure=failure,
        limit=limit,
        priority=priority,
    )


def died(claim: Claim, reason: Reason, failure: Failure, limit: int | None = None) -> Transition:
    """The last attempt failed: the job goes to the dead letters."""
    return Transition(claim, JobState.DEAD, reason, claim.failures + 1, claim.crashes, failure=failure, limit=limit)


def unhandled(claim: Claim, failure: Failure) -> Transition:
    """No worker had a handler for the job for too long. It never ran, so no failure is counted."""
    return Transition(claim, JobState.DEAD, Reason.UNKNOWN_KIND, claim.failures, claim.crashes, failure=failure)


def crashed(claim: Claim, failure: Failure) -> Transition:
    """The process died during the job, which is ready again at once."""
    return Transition(claim, JobState.READY, Reason.CRASHED, claim.failures, claim.crashes + 1, failure=failure)


def crashed_for_good(claim: Claim, failure: Failure) -> Transition:
    """The process died during the job too often: the job itself is the likely cause."""
    return Transition(claim, JobState.DEAD, Reason.CRASH_LIMIT, claim.failures, claim.crashes + 1, failure=failure)


def returning(crash: Transition, wait: timedelta) -> Transition:
    """The process died during the job, which is ready again after `wait`: orphans may come back one by one (C2)."""
    if wait <= timedelta(0):
        return crash
    return replace(crash, to=JobState.RETRYING, wait=wait)


def waiting(claim: Claim, reason: Reason, wait: timedelta) -> Transition:
    """The handler parks the job until `wait` is over. No attempt is used."""
    return Transition(claim, JobState.WAITING, reason, claim.failures, claim.crashes, wait=wait)


def paused(claim: Claim, reason: Reason, wait: timedelta | None, note: str | None = None) -> Transition:
    """The job is held back for `wait`, or until resumed. No attempt is used."""
    return Transition(claim, JobState.PAUSED, reason, claim.failures, claim.crashes, wait=wait, note=note)


def parked(
    claim: Claim,
    reason: Reason,
    wait: timedelta | None,
    awaits: Awaits | None,
    note: str | None,
    also: tuple[Awaits, ...] = (),
) -> Transition:
    """The job waits until `wait` is over or one awaited thing arrives, possibly at once. No attempt is used."""
    return Transition(
        claim, JobState.WAITING, reason, claim.failures, claim.crashes, wait=wait, note=note, awaits=awaits, also=also
    )


def arrived(move: Transition, reason: Reason) -> Transition:
    """The same move for a job that is ready at once, because an awaited thing is already there."""
    return replace(move, to=JobState.READY, reason=reason, wait=None, note=None, awaits=None, also=())


def released(claim: Claim, *, has_passed: bool = False) -> Transition:
    """The job goes back to the queue unchanged. No attempt is used."""
    return Transition(claim, JobState.READY, Reason.RELEASED, claim.failures, claim.crashes, has_passed=has_passed)


def cancelled(claim: Claim, note: str | None) -> Transition:
    """The job is cancelled."""
    return Transition(claim, JobState.CANCELLED, Reason.CANCELLED, claim.failures, claim.crashes, note=note)


def called_off(move: Transition, why: str | None = None) -> Transition:
    """The same attempt, failed or not, but the job is cancelled, because its cancellation was requested."""
    return replace(move, to=JobState.CANCELLED, reason=Reason.CANCELLED, wait=None, note=why or move.note)


def of_parent(move: Transition) -> Transition:
    """The same move for an attempt that has spawned children."""
    return replace(move, is_parent=True)


def past_gates(move: Transition) -> Transition:
    """The same move for an attempt that has passed its gates, and need not pass them again."""
    return replace(move, has_passed=True)

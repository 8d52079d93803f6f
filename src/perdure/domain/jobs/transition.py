"""The decision about one attempt, ready for an engine to write.

The constructors below build every transition: each names the move and its reason. `Transition` itself refuses a move
that ``MOVES`` does not hold, so an illegal one never reaches an engine. All times are waits relative to the database's
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


class Transition(Struct, frozen=True, gc=False):
    """Where a claimed job goes next, and why.

    `wait` None on a parked state means: until somebody resumes it. `failure` not None makes an attempt record.
    `failures` and `crashes` are the counts after the move. `limit` is how many attempts the rule allows that
    judged the failure, 0 any number; None: no rule was asked.
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
    has_passed: bool = False  # the attempt has passed its gates, and need not again when it comes back
    limit: int | None = None
    priority: int | None = None  # which the job has from now on; None: the one that it had

    def __post_init__(self) -> None:
        """Refuse a move that a running job cannot make."""
        if (self.to, self.reason) not in _MOVES_OF_A_CLAIM:
            raise ValueError(
                f"job {self.claim.job_id}: no move from running to {self.to} with the reason {self.reason!r}; "
                "MOVES in perdure.domain.jobs.states holds the legal moves"
            )

    @property
    def all_awaits(self) -> tuple[Awaits, ...]:
        """Everything of which the first to come wakes the job, if it waits."""
        if self.awaits is None or self.to is not JobState.WAITING:
            return ()
        return (self.awaits, *self.also)

    @property
    def passes(self) -> str | None:
        """The start that is to be kept as the one that has passed the job's gates; None: nothing is to be kept."""
        return self.claim.start if self.has_passed and not self.claim.has_passed else None


def succeeded(claim: Claim, result: str | None, warnings: tuple[str, ...]) -> Transition:
    """The job is done; its count of failures is kept, so that the record says on which attempt."""
    reason = Reason.DONE_WITH_WARNINGS if warnings else Reason.DONE
    return Transition(
        claim, JobState.SUCCEEDED, reason, claim.failures, claim.crashes, result=result, warnings=warnings
    )


def retrying(
    claim: Claim,
    reason: Reason,
    failure: Failure,
    wait: timedelta,
    limit: int | None = None,
    priority: int | None = None,
) -> Transition:
    """The attempt failed and another one follows after `wait`; with no wait the job is ready at once."""
    to = JobState.RETRYING if wait > timedelta(0) else JobState.READY
    counts = claim.failures + 1, claim.crashes
    return Transition(claim, to, reason, *counts, wait=wait, failure=failure, limit=limit, priority=priority)


def died(claim: Claim, reason: Reason, failure: Failure, limit: int | None = None) -> Transition:
    """The attempt failed and was the last: the job goes to the dead letters."""
    return Transition(claim, JobState.DEAD, reason, claim.failures + 1, claim.crashes, failure=failure, limit=limit)


def unhandled(claim: Claim, failure: Failure) -> Transition:
    """Nobody had a handler for the job for too long. It never ran, so no failure is counted."""
    return Transition(claim, JobState.DEAD, Reason.UNKNOWN_KIND, claim.failures, claim.crashes, failure=failure)


def crashed(claim: Claim, failure: Failure) -> Transition:
    """The process died under the job, which is ready again at once."""
    return Transition(claim, JobState.READY, Reason.CRASHED, claim.failures, claim.crashes + 1, failure=failure)


def crashed_for_good(claim: Claim, failure: Failure) -> Transition:
    """The process died under the job too often: the job itself is the likely killer."""
    return Transition(claim, JobState.DEAD, Reason.CRASH_LIMIT, claim.failures, claim.crashes + 1, failure=failure)


def returning(crash: Transition, wait: timedelta) -> Transition:
    """The same crash, of a job that is ready again only after `wait`: orphans may come back one by one (C2)."""
    if wait <= timedelta(0):
        return crash
    return replace(crash, to=JobState.RETRYING, wait=wait)


def waiting(claim: Claim, reason: Reason, wait: timedelta) -> Transition:
    """The job parks by its own wish and comes back after `wait`, at no cost."""
    return Transition(claim, JobState.WAITING, reason, claim.failures, claim.crashes, wait=wait)


def paused(claim: Claim, reason: Reason, wait: timedelta | None, note: str | None = None) -> Transition:
    """The job is held back at no cost, for `wait` or until resumed."""
    return Transition(claim, JobState.PAUSED, reason, claim.failures, claim.crashes, wait=wait, note=note)


def parked(
    claim: Claim,
    reason: Reason,
    wait: timedelta | None,
    awaits: Awaits | None,
    note: str | None,
    also: tuple[Awaits, ...] = (),
) -> Transition:
    """The job waits, at no cost: until `wait` is over or one of the things it awaits is there, which may be at once."""
    return Transition(
        claim, JobState.WAITING, reason, claim.failures, claim.crashes, wait=wait, note=note, awaits=awaits, also=also
    )


def arrived(move: Transition, reason: Reason) -> Transition:
    """The same move of a job that is ready at once, because what it would wait for is there already."""
    return replace(move, to=JobState.READY, reason=reason, wait=None, note=None, awaits=None, also=())


def released(claim: Claim, *, has_passed: bool = False) -> Transition:
    """The job goes back to the queue untouched, at no cost."""
    return Transition(claim, JobState.READY, Reason.RELEASED, claim.failures, claim.crashes, has_passed=has_passed)


def cancelled(claim: Claim, note: str | None) -> Transition:
    """The job is called off."""
    return Transition(claim, JobState.CANCELLED, Reason.CANCELLED, claim.failures, claim.crashes, note=note)


def called_off(move: Transition, why: str | None = None) -> Transition:
    """The same attempt, failed or not, of a job that must not come back because somebody wants it called off."""
    return replace(move, to=JobState.CANCELLED, reason=Reason.CANCELLED, wait=None, note=why or move.note)


def of_parent(move: Transition) -> Transition:
    """The same move of an attempt that has spawned children."""
    return replace(move, is_parent=True)


def past_gates(move: Transition) -> Transition:
    """The same move of an attempt that has passed its gates, and need not again when the job comes back."""
    return replace(move, has_passed=True)

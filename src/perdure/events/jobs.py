"""What happens to jobs: attempts, retries, deaths, steps and families."""

from __future__ import annotations

from datetime import datetime
from typing import Any, ClassVar, Final, Self

from msgspec import Struct, field, json

from perdure.domain.jobs.job import Claim
from perdure.domain.jobs.transition import Transition
from perdure.events.base import Event


class OfAJob(Struct, frozen=True, kw_only=True):
    """What the application itself has said of a job: its `ref`, and its `meta`, which the log leaves out."""

    ref: str | None = None
    meta: dict[str, Any] = field(default_factory=dict)


class JobStarted(Event, OfAJob, frozen=True):
    """An attempt begins. Only for those who subscribe to it by name."""

    sentence: ClassVar[str] = "job started"
    job_id: str
    kind: str
    queue: str
    attempt: int


class JobSucceeded(Event, OfAJob, frozen=True):
    """An attempt has succeeded, after so many seconds. Only for those who subscribe to it by name."""

    sentence: ClassVar[str] = "job succeeded"
    job_id: str
    kind: str
    queue: str
    attempt: int
    seconds: float


class JobFailed(Event, OfAJob, frozen=True):
    """An attempt has failed; `will_retry` tells whether another follows. Only for those who subscribe to it by name.

    `exception` is what the handler raised. None: the attempt ran in a process of its own, was out of time, or its
    arguments could not be read.
    """

    sentence: ClassVar[str] = "job failed"
    level: ClassVar[str] = "warning"
    job_id: str
    kind: str
    queue: str
    attempt: int
    seconds: float
    will_retry: bool
    error: str
    exception: BaseException | None = None


def said_of(claim: Claim) -> dict[str, Any]:
    """The fields of `OfAJob`."""
    return {"ref": claim.ref, "meta": json.decode(claim.meta) if claim.meta else {}}


PER_ATTEMPT: Final = (JobStarted, JobSucceeded, JobFailed)
"""Events of every attempt: they are made only while there is a subscriber to one of them."""


class JobRetrying(Event, OfAJob, frozen=True):
    """An attempt failed and another one follows.

    `failures` are those that count against `max_attempts`, which is the limit of the rule for this error. `next_at` is
    when it follows, by the database's clock, up to the moment that it takes to record the failure.
    """

    sentence: ClassVar[str] = "attempt failed, will try again"
    level: ClassVar[str] = "warning"
    job_id: str
    kind: str
    attempt: int
    failures: int
    max_attempts: int | None
    wait: float
    error: str
    traceback: str | None = None
    next_at: datetime | None = None


class JobDied(Event, OfAJob, frozen=True):
    """A job went to the dead letters."""

    sentence: ClassVar[str] = "job is dead"
    level: ClassVar[str] = "error"
    job_id: str
    kind: str
    attempt: int
    reason: str
    error: str
    traceback: str | None = None

    @classmethod
    def by(cls, move: Transition) -> Self:
        """The death of a job by this move."""
        claim, failure = move.claim, move.failure
        traceback = None if failure is None else failure.traceback
        facts = claim.job_id, claim.kind, claim.attempt, move.reason.value, str(failure or "")
        return cls(*facts, traceback, **said_of(claim))


class UnknownKindSeen(Event, frozen=True):
    """A job came for which this worker has no handler; what becomes of it is a setting."""

    sentence: ClassVar[str] = "no handler for this kind here"
    level: ClassVar[str] = "warning"
    job_id: str
    kind: str


class HandlerStuck(Event, frozen=True):
    """A handler ignored its cancellation or time limit; its attempt was recorded without it."""

    sentence: ClassVar[str] = "handler does not stop, its attempt was given up"
    level: ClassVar[str] = "error"
    job_id: str
    kind: str
    because: str


class FamilySpawned(Event, frozen=True):
    """A job has spawned children."""

    sentence: ClassVar[str] = "children spawned"
    job_id: str
    kind: str
    family: str
    children: int


class FamilySettled(Event, frozen=True):
    """A job has nothing more to wait for from its children."""

    sentence: ClassVar[str] = "children settled"
    job_id: str
    kind: str
    family: str
    children: int
    succeeded: int
    failed: int
    because: str


class FamilyRecovered(Event, frozen=True):
    """A job came back while it waited for its children: it waits on, or spawns them anew."""

    sentence: ClassVar[str] = "parent came back while it waited for its children"
    job_id: str
    kind: str
    family: str
    decision: str  # stays in aggregate, or back to ingest
    because: str
    children: int = 0  # how many were found


class StepGivenUp(Event, frozen=True):
    """An optional step has failed for good: it yields None, and its job, if it succeeds, does so with a warning."""

    sentence: ClassVar[str] = "optional step given up"
    level: ClassVar[str] = "warning"
    job_id: str
    kind: str
    step: str
    tries: int
    error: str


class FamilyRefused(Event, frozen=True):
    """A job that has lost its claim wanted to spawn children; none was stored."""

    sentence: ClassVar[str] = "children not spawned"
    level: ClassVar[str] = "warning"
    job_id: str
    kind: str
    family: str
    because: str

"""Events of jobs: attempts, retries, deaths, steps and families."""

from __future__ import annotations

from datetime import datetime
from typing import Any, ClassVar, Final, Self

from msgspec import Struct, field, json

from perdure.domain.jobs.job import Claim
from perdure.domain.jobs.transition import Transition
from perdure.events.base import Event
from perdure.policy.secrets.redaction import redact_document


class OfAJob(Struct, frozen=True, kw_only=True):
    """The application's own data about a job: its `ref`, and its `meta`, which the log leaves out."""

    ref: str | None = None
    meta: dict[str, Any] = field(default_factory=dict)


class JobStarted(Event, OfAJob, frozen=True):
    """An attempt started. Sent only to listeners that subscribe to it by name."""

    sentence: ClassVar[str] = "job started"
    job_id: str
    kind: str
    queue: str
    attempt: int


class JobSucceeded(Event, OfAJob, frozen=True):
    """An attempt succeeded; `seconds` is its run time. Sent only to listeners that subscribe to it by name."""

    sentence: ClassVar[str] = "job succeeded"
    job_id: str
    kind: str
    queue: str
    attempt: int
    seconds: float


class JobFailed(Event, OfAJob, frozen=True):
    """An attempt failed; `will_retry` says whether another follows. Sent only to listeners that subscribe by name.

    `exception` is what the handler raised. None: the attempt ran in a process of its own, ran out of time, or its
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
    return {"ref": claim.ref, "meta": json.decode(redact_document(claim.meta) or "{}") if claim.meta else {}}


PER_ATTEMPT: Final = (JobStarted, JobSucceeded, JobFailed)
"""Events of single attempts: created only while one of them has a subscriber."""


class JobRetrying(Event, OfAJob, frozen=True):
    """An attempt failed and will be retried.

    `failures` counts the failures against `max_attempts`, the limit of the rule for this error. `next_at` is when the
    retry is due by the database's clock, accurate to the time that recording the failure takes.
    """

    sentence: ClassVar[str] = "attempt failed, will retry"
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
    """A job died: it went to the dead letters."""

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
        """The JobDied event for this transition."""
        claim, failure = move.claim, move.failure
        return cls(
            job_id=claim.job_id,
            kind=claim.kind,
            attempt=claim.attempt,
            reason=move.reason.value,
            error=str(failure or ""),
            traceback=None if failure is None else failure.traceback,
            **said_of(claim),
        )


class UnknownKindSeen(Event, frozen=True):
    """A worker claimed a job for which it has no handler; a setting decides what happens to it."""

    sentence: ClassVar[str] = "no handler for this kind in this worker"
    level: ClassVar[str] = "warning"
    job_id: str
    kind: str


class HandlerStuck(Event, frozen=True):
    """A handler ignored its cancellation or time limit; its attempt was recorded without it."""

    sentence: ClassVar[str] = "handler does not stop, its attempt was abandoned"
    level: ClassVar[str] = "error"
    job_id: str
    kind: str
    because: str


class FamilySpawned(Event, frozen=True):
    """A job spawned children."""

    sentence: ClassVar[str] = "children spawned"
    job_id: str
    kind: str
    family: str
    children: int
    stored: tuple[tuple[str, str, int], ...] = ()  # queue, kind, how many of them


class FamilySettled(Event, frozen=True):
    """A job stopped waiting for its children: they are settled, or its time is up."""

    sentence: ClassVar[str] = "children settled"
    job_id: str
    kind: str
    family: str
    children: int
    succeeded: int
    failed: int
    because: str


class FamilyRecovered(Event, frozen=True):
    """A job was resumed while it waited for its children: it keeps waiting, or spawns them again."""

    sentence: ClassVar[str] = "parent resumed while it waited for its children"
    job_id: str
    kind: str
    family: str
    decision: str  # stays in aggregate, or back to ingest
    because: str
    children: int = 0  # how many were found


class StepGivenUp(Event, frozen=True):
    """An optional step failed for good: it returns None, and a job that succeeds does so with a warning."""

    sentence: ClassVar[str] = "optional step given up"
    level: ClassVar[str] = "warning"
    job_id: str
    kind: str
    step: str
    tries: int
    error: str


class FamilyRefused(Event, frozen=True):
    """A job that has lost its claim tried to spawn children; none was stored."""

    sentence: ClassVar[str] = "children not spawned"
    level: ClassVar[str] = "warning"
    job_id: str
    kind: str
    family: str
    because: str

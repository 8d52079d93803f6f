"""What spans say about jobs: attributes, status, and the event of an error."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from opentelemetry.trace import Status, StatusCode

from perdure.domain.jobs.job import Claim, NewJob
from perdure.domain.jobs.outcome import Failure, Parked
from perdure.domain.jobs.transition import Transition
from perdure.signals.otel import names

Attributes = dict[str, Any]

LOST = "lost"
SYSTEM = "perdure"


def of_claim(claim: Claim, *, messaging: bool) -> Attributes:
    """An attempt at its start."""
    said: Attributes = {
        names.JOB_ID: claim.job_id,
        names.JOB_KIND: claim.kind,
        names.JOB_QUEUE: claim.queue,
        names.JOB_ATTEMPT: claim.attempt,
    }
    if claim.ref is not None:
        said[names.JOB_REF] = claim.ref
    if claim.parent is not None:
        said[names.JOB_PARENT] = claim.parent
    if (waited := claim.waited) is not None:
        said[names.ATTEMPT_WAITED] = waited.total_seconds()
    if messaging:
        said |= _message(claim.queue, names.ATTEMPT, "process") | {names.MESSAGE_ID: claim.job_id}
    return said


def of_end(move: Transition | None) -> Attributes:
    """An attempt at its end; None: it had lost its claim."""
    if move is None:
        return {names.ATTEMPT_STATE: LOST}
    said: Attributes = {names.ATTEMPT_STATE: move.to.value, names.ATTEMPT_REASON: move.reason.value}
    if move.failure is not None:
        said[names.ERROR_TYPE] = move.failure.error_type
        if move.wait is not None:
            said[names.ATTEMPT_RETRY_IN] = move.wait.total_seconds()
    return said


def of_jobs(first: NewJob, count: int, kinds: set[str], queues: set[str], *, messaging: bool) -> Attributes:
    """An enqueue of so many jobs."""
    said: Attributes = {names.ENQUEUE_JOBS: count}
    if count == 1:
        said[names.JOB_ID] = first.id
        if first.ref is not None:
            said[names.JOB_REF] = first.ref
    if len(kinds) == 1:
        said[names.JOB_KIND] = first.kind
    if len(queues) == 1:
        said[names.JOB_QUEUE] = first.queue
    if messaging:
        said |= _message(first.queue if len(queues) == 1 else None, names.ENQUEUE, "send")
        said |= {names.MESSAGE_ID: first.id} if count == 1 else {names.BATCH_COUNT: count}
    return said


def of_call(claim: Claim, key: str) -> Attributes:
    """A call in a step or a poll."""
    return {names.CALL_NAME: key, names.JOB_ID: claim.job_id, names.JOB_KIND: claim.kind}


def of_wait(parked: Parked, span: timedelta | None) -> Attributes:
    """A wait of a handler."""
    said: Attributes = {names.WAIT_REASON: parked.reason}
    if span is not None:
        said[names.WAIT_SECONDS] = span.total_seconds()
    if parked.event is not None:
        said[names.WAIT_EVENT] = parked.event
    if parked.family is not None:
        said[names.WAIT_FAMILY] = parked.family
    return said


def status_of(failure: Failure | None) -> Status:
    """Unset unless there is an error: OpenTelemetry leaves "ok" to applications."""
    return Status(StatusCode.UNSET) if failure is None else Status(StatusCode.ERROR, str(failure))


def exception_of(failure: Failure) -> Attributes:
    """The attributes of the event of an error."""
    said: Attributes = {names.EXCEPTION_TYPE: failure.error_type, names.EXCEPTION_MESSAGE: failure.message}
    if failure.traceback is not None:
        said[names.EXCEPTION_STACKTRACE] = failure.traceback
    return said


def _message(queue: str | None, operation: str, kind: str) -> Attributes:
    said: Attributes = {names.SYSTEM: SYSTEM, names.OPERATION: operation, names.OPERATION_TYPE: kind}
    return said if queue is None else said | {names.DESTINATION: queue}

"""The history of a job, in order: merged from the job, its attempts, its steps and the audit trail."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime

from msgspec import Struct

from perdure.domain.flows.flow import StepRecord, StepState
from perdure.domain.jobs.job import Attempt, JobView
from perdure.domain.jobs.states import FINAL
from perdure.domain.operate.audit import AuditEntry
from perdure.operate.records import JobDetail


class JobEvent(Struct, frozen=True, kw_only=True):
    """One event in the history. `event` is for programs, `text` for people. `by` is the actor, if there is one."""

    at: datetime
    event: str
    text: str
    by: str | None = None


def history(detail: JobDetail, trail: Sequence[AuditEntry]) -> list[JobEvent]:
    """The events of a job, oldest first."""
    events: list[JobEvent] = [
        *_of_job(detail.job),
        *_of_attempts(detail.attempts),
        *_of_steps(detail.steps),
        *(JobEvent(at=entry.at, event="command", text=entry.action, by=entry.actor) for entry in trail),
    ]
    return sorted(events, key=lambda event: event.at)


def _of_job(job: JobView) -> Iterator[JobEvent]:
    yield JobEvent(at=job.created_at, event="created", text=f"enqueued in {job.queue}")
    if job.since > job.created_at:
        yield JobEvent(at=job.since, event="due", text="due, or given a new life")
    if job.started_at is not None:
        yield JobEvent(at=job.started_at, event="started", text=f"attempt {job.failures + job.crashes + 1} started")
    if job.cancel_requested_at is not None:
        text = "asked to stop"
        yield JobEvent(at=job.cancel_requested_at, event="cancel_requested", text=text, by=job.cancelled_by)
    if job.finished_at is not None and job.state in FINAL:
        yield JobEvent(at=job.finished_at, event=job.state.value, text=f"{job.state}: {job.reason}")
    elif job.due_at is not None:
        yield JobEvent(at=job.due_at, event="comes_back", text=f"{job.state} until then: {job.reason}")


def _of_attempts(attempts: Iterable[Attempt]) -> Iterator[JobEvent]:
    for attempt in attempts:
        yield JobEvent(
            at=attempt.started_at, event="attempt_started", text=f"attempt {attempt.number}", by=attempt.worker
        )
        said = f"attempt {attempt.number} {attempt.reason}: {attempt.error_type}: {attempt.message}"
        yield JobEvent(at=attempt.finished_at, event="attempt_failed", text=said, by=attempt.worker)


def _of_steps(steps: Iterable[StepRecord]) -> Iterator[JobEvent]:
    for step in steps:
        yield JobEvent(at=step.begun_at, event="step_begun", text=f"{step.kind} {step.key}")
        if step.state is not StepState.BEGUN and step.changed_at is not None:
            event = f"step_{step.state.replace(' ', '_')}"
            yield JobEvent(at=step.changed_at, event=event, text=f"{step.kind} {step.key} {step.state}")

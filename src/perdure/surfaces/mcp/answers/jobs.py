"""Jobs as agents see them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from perdure.domain.flows.flow import FamilyView, StepRecord
from perdure.domain.gate_record import GateRecord
from perdure.domain.jobs.job import Attempt, JobView
from perdure.operate.records import JobDetail, Why
from perdure.surfaces.mcp.answers.base import Answer, Part
from perdure.surfaces.mcp.quoting import Quoted, Quoter, name, sentence

_ATTEMPTS_SHOWN: Final = 5
_STEPS_SHOWN: Final = 20
_SHOWN_LINES: Final = 20
_GATES_SHOWN: Final = 20
_SHORT_TEXT_CHARACTERS: Final = 300
_LONG_TEXT_CHARACTERS: Final = 4_000
_TRACEBACK_TAIL_CHARACTERS: Final = 2_000  # the end of a traceback says where the error happened


class JobLine(Part):
    """A job in a list."""

    id: str
    kind: str
    queue: str
    state: str
    created_at: datetime
    due_at: datetime | None
    finished_at: datetime | None
    failures: int
    failure_group: str | None
    ref: Quoted | None
    last_error: Quoted | None


class FoundJobs(Answer):
    """Jobs that match, newest first. `next`: give it as `before` for the next page.

    `searched_to`: the search reached its time limit there; older jobs may match too, and `next` continues.
    """

    jobs: list[JobLine]
    next: str | None
    searched_to: datetime | None


class AttemptMade(Part):
    """An attempt that did not succeed."""

    number: int
    reason: str
    worker: str
    started_at: datetime
    finished_at: datetime
    error: Quoted
    traceback: Quoted | None
    next_at: datetime | None


class Children(Part):
    """The children of one key."""

    key: str
    total: int
    succeeded: int
    failed: int


class Step(Part):
    """A step of a job, or a wait."""

    key: str
    kind: str
    state: str
    tries: int
    due_at: datetime | None
    note: Quoted | None


class GateMet(Part):
    """A gate that an attempt of a job has met: how long it held the job, and when the attempt passed it."""

    attempt: int
    gate: str
    key: Quoted
    passed_at: datetime | None
    estimate: float | None
    held_since: datetime | None
    held_until: datetime | None
    held_seconds: float


class WhyShort(Part):
    """Why a job does not run, and the remedy."""

    answer: Quoted
    facts: list[Quoted]
    until: datetime | None
    what_to_do: str | None


class JobExplained(Answer):
    """One job with its history: the last attempts, gates, steps and log lines, and why it does not run now."""

    job: JobLine
    priority: int
    crashes: int
    max_attempts: int | None
    worker: str | None
    parent: str | None
    started_at: datetime | None
    why_not_running: WhyShort | None
    args: Quoted
    result: Quoted | None
    meta: Quoted | None
    attempts: list[AttemptMade]
    children: list[Children]
    steps: list[Step]
    gates: list[GateMet]
    log: list[Quoted]


class WhyNotRunning(Answer):
    """Why a job does not run. `until`: when that changes without a command, if known."""

    job: JobLine
    why: WhyShort


def job_line(quoter: Quoter, job: JobView) -> JobLine:
    """A job in a list."""
    return JobLine(
        id=job.id,
        kind=name(job.kind),
        queue=name(job.queue),
        state=job.state,
        created_at=job.created_at,
        due_at=job.due_at,
        finished_at=job.finished_at,
        failures=job.failures,
        failure_group=job.fingerprint,
        ref=quoter.maybe(job.ref, _SHORT_TEXT_CHARACTERS),
        last_error=quoter.maybe(job.last_error, _SHORT_TEXT_CHARACTERS),
    )


def why_short(quoter: Quoter, why: Why) -> WhyShort:
    """Why a job does not run. The sentences quote names and errors, so they count as untrusted text."""
    return WhyShort(
        answer=quoter.text(why.answer, _SHORT_TEXT_CHARACTERS),
        facts=[quoter.text(fact, _SHORT_TEXT_CHARACTERS) for fact in why.facts],
        until=why.until,
        what_to_do=None if why.what_to_do is None else sentence(why.what_to_do),
    )


def job_explained(quoter: Quoter, detail: JobDetail, why: Why | None) -> JobExplained:
    """One job with its history."""
    job = detail.job
    return JobExplained(
        job=job_line(quoter, job),
        priority=job.priority,
        crashes=job.crashes,
        max_attempts=job.max_attempts,
        worker=None if job.worker is None else name(job.worker),
        parent=job.parent,
        started_at=job.started_at,
        why_not_running=None if why is None else why_short(quoter, why),
        args=quoter.text(job.args, _LONG_TEXT_CHARACTERS),
        attempts=[attempt_made(quoter, attempt) for attempt in detail.attempts[-_ATTEMPTS_SHOWN:]],
        result=quoter.maybe(job.result),
        meta=quoter.maybe(job.meta),
        children=[_children(family) for family in detail.families[:_STEPS_SHOWN]],
        steps=[_step(quoter, step) for step in detail.steps[-_STEPS_SHOWN:]],
        gates=_gates(quoter, detail.gates),
        log=[
            quoter.text(f"{line.at.isoformat()} {line.text}", _SHORT_TEXT_CHARACTERS)
            for line in detail.lines[-_SHOWN_LINES:]
        ],
    )


def attempt_made(quoter: Quoter, attempt: Attempt) -> AttemptMade:
    """An attempt that did not succeed."""
    return AttemptMade(
        number=attempt.number,
        reason=attempt.reason,
        worker=name(attempt.worker),
        started_at=attempt.started_at,
        finished_at=attempt.finished_at,
        error=quoter.text(f"{attempt.error_type}: {attempt.message}"),
        traceback=None
        if attempt.traceback is None
        else quoter.text(attempt.traceback[-_TRACEBACK_TAIL_CHARACTERS:], _TRACEBACK_TAIL_CHARACTERS),
        next_at=attempt.next_at,
    )


def _children(family: FamilyView) -> Children:
    return Children(key=name(family.key), total=family.total, succeeded=family.succeeded, failed=family.failed)


def _gates(quoter: Quoter, records: Sequence[GateRecord]) -> list[GateMet]:
    met = [(record.attempt, visit) for record in records for visit in record.visits]
    return [
        GateMet(
            attempt=attempt,
            gate=name(visit.gate),
            key=quoter.text(visit.key, _SHORT_TEXT_CHARACTERS),
            passed_at=visit.passed_at,
            estimate=visit.estimate,
            held_since=visit.held_since,
            held_until=visit.held_until,
            held_seconds=visit.held_seconds,
        )
        for attempt, visit in met[-_GATES_SHOWN:]
    ]


def _step(quoter: Quoter, step: StepRecord) -> Step:
    return Step(
        key=name(step.key),
        kind=step.kind,
        state=step.state,
        tries=step.tries,
        due_at=step.due_at,
        note=quoter.maybe(step.note, _SHORT_TEXT_CHARACTERS),
    )

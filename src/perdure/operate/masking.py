"""Masks secrets in jobs, steps and schedules for every surface.

The store keeps the real values, because handlers need them. So everything that the desk returns passes through here.
"""

from __future__ import annotations

from typing import Any, TypeVar

from msgspec.structs import replace

from perdure.domain.flows.flow import Child, StepRecord
from perdure.domain.jobs.job import JobView
from perdure.domain.schedule import Schedule, ScheduleView
from perdure.policy.secrets.redaction import redact_document

Record = TypeVar("Record", JobView, StepRecord, Schedule, Child)

_OF_JOB = ("args", "meta", "result", "cursor")


def shown_job(job: JobView) -> JobView:
    """A job with its secrets masked."""
    return _masked(job, _OF_JOB)


def shown_step(step: StepRecord) -> StepRecord:
    """A step with its secrets masked."""
    return _masked(step, ("result",))


def shown_schedule(view: ScheduleView) -> ScheduleView:
    """A schedule with its secrets masked."""
    schedule = _masked(view.schedule, ("args", "meta"))
    return view if schedule is view.schedule else replace(view, schedule=schedule)


def shown_child(child: Child) -> Child:
    """A child of a job with its secrets masked."""
    return _masked(child, ("result",))


def _masked(record: Record, fields: tuple[str, ...]) -> Record:
    changed: dict[str, Any] = {}
    for field in fields:
        text = getattr(record, field)
        if (masked := redact_document(text)) is not text:
            changed[field] = masked
    return replace(record, **changed) if changed else record

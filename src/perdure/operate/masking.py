"""Jobs, steps and schedules as every surface shows them: without the secrets that they carry.

The store keeps what handlers need. So everything that the desk hands out passes through here.
"""

from __future__ import annotations

from typing import Any, TypeVar

from msgspec.structs import replace

from perdure.domain.flows.flow import StepRecord
from perdure.domain.jobs.job import JobView
from perdure.domain.schedule import ScheduleView
from perdure.policy.secrets.redaction import redact_document

Record = TypeVar("Record", JobView, StepRecord)

_OF_JOB = ("args", "meta", "result", "cursor")


def shown_job(job: JobView) -> JobView:
    """A job as it is shown."""
    return _masked(job, _OF_JOB)


def shown_step(step: StepRecord) -> StepRecord:
    """A step as it is shown."""
    return _masked(step, ("result",))


def shown_schedule(view: ScheduleView) -> ScheduleView:
    """A schedule as it is shown."""
    schedule = view.schedule
    args = redact_document(schedule.args)
    return view if args == schedule.args else replace(view, schedule=replace(schedule, args=args))


def _masked(record: Record, fields: tuple[str, ...]) -> Record:
    changed: dict[str, Any] = {}
    for field in fields:
        text = getattr(record, field)
        if (masked := redact_document(text)) is not text:
            changed[field] = masked
    return replace(record, **changed) if changed else record

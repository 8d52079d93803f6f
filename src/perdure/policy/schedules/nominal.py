"""The job of one nominal time."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, Final

from msgspec import json

from perdure.domain.jobs.ids import new_job_id
from perdure.domain.jobs.job import NewJob, UniqueKey
from perdure.domain.jobs.states import JobState
from perdure.domain.schedule import Cause, Overlap, Schedule
from perdure.policy.retries.jitter import Randomness

_ONE_AT_A_TIME: Final = frozenset({JobState.RUNNING, JobState.RETRYING, JobState.WAITING})


def job_of(schedule: Schedule, nominal_at: datetime, chance: Randomness, cause: Cause = Cause.TIME) -> NewJob:
    """The job of one nominal time; its handler reads the time as `ctx.nominal_at`.

    The schedule's own metadata overrides that of its call.
    """
    spread = timedelta(seconds=chance.uniform(0, schedule.jitter.total_seconds())) if schedule.jitter else None
    queued = schedule.overlap is Overlap.QUEUE
    given = json.decode(schedule.meta, type=dict[str, Any]) if schedule.meta else {}
    return NewJob(
        id=new_job_id(),
        kind=schedule.kind,
        args=schedule.args,
        queue=schedule.queue,
        priority=schedule.priority,
        run_at=nominal_at + spread if spread is not None else None,
        unique=UniqueKey(f"schedule {schedule.name}", _ONE_AT_A_TIME) if queued else None,
        max_attempts=schedule.max_attempts,
        crash_limit=schedule.crash_limit,
        settings=schedule.settings,
        tags=(f"schedule:{schedule.name}", *schedule.tags),
        meta=json.encode(given | {"schedule": schedule.name, "nominal_at": nominal_at, "cause": cause}).decode(),
        fair_key=schedule.fair_key,
    )

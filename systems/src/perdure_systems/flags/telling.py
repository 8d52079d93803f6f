"""The log lines of schedules, word by word.

A listener writes them, so they come from the worker that decides: also for a schedule whose processes died too often.
The words of the fields are those that dashboards already search for.
"""

from __future__ import annotations

from typing import Any, Final

import structlog

from perdure import App, Event, JobDied, JobRetrying, JobSucceeded
from perdure.events import RecordRefused, StoreTrouble

_SAVING: Final = "acknowledge"
_EXHAUSTED: Final = "attempts exhausted"

log = structlog.get_logger("perdure_systems.flags")


def tell_of_schedules(app: App) -> None:
    """Write the log lines of the schedules of an app."""
    app.subscribe(_tell, JobRetrying, JobDied, JobSucceeded, StoreTrouble, RecordRefused)


def _tell(event: Event) -> None:
    match event:
        case JobRetrying(meta={"scheduleId": str()} as meta):
            next_at = None if event.next_at is None else event.next_at.isoformat()
            about = _about(meta, _before(meta) + event.failures)
            log.info("Retrying failed schedule", **about, nextRetryAt=next_at)
        case JobDied(meta={"scheduleId": str()} as meta, reason=str() as reason) if reason == _EXHAUSTED:
            about = _about(meta, meta["maxRetries"])
            log.error("Schedule retry limit exceeded", **about, nextRetryAt=None, lastError=event.error)
        case JobDied(meta={"scheduleId": str()} as meta):
            retries = min(_before(meta) + event.attempt - 1, meta["maxRetries"])
            log.error("Schedule failed for good", **_about(meta, retries), reason=event.reason, lastError=event.error)
        case JobSucceeded(meta={"scheduleId": str()} as meta) if event.attempt > 1:
            log.info("Schedule applied on retry", **_about(meta, _before(meta) + event.attempt - 1))
        case StoreTrouble(what=what) if what == _SAVING:
            log.error("Failed to save schedule retry", error=event.error, nextTryInSeconds=event.wait)
        case RecordRefused():
            log.error("Failed to save schedule retry", jobId=event.job_id, error=event.error)


def _about(meta: dict[str, Any], retry_count: int) -> dict[str, Any]:
    return {"scheduleId": meta["scheduleId"], "flagKey": meta["flagKey"], "retryCount": retry_count}


def _before(meta: dict[str, Any]) -> int:
    """The failures of the schedule before this job: of the change, where this is the invalidation."""
    return int(meta.get("failuresBefore", 0))

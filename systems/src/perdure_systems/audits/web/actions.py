"""Manual actions: retry an audit or a webhook, clean up."""

from __future__ import annotations

from typing import Any, Final

from perdure import ConflictError, JobFilter
from perdure_systems.audits.jobs import AUDIT, CLEAN_UP, DELIVER, app
from perdure_systems.audits.web.views import audit_view, webhook_view

RETRIED_WEBHOOKS_LIMIT: Final = 50


async def retry_audit(audit_id: str, actor: str) -> None:
    """Retry a failed audit; the results of its steps are kept. `ConflictError` if it has not failed."""
    await _requeue(AUDIT, audit_id, (await audit_view(audit_id)).status, actor)


async def retry_webhook(webhook_id: str, actor: str) -> None:
    """Five new attempts for a failed webhook. `ConflictError` if it has not failed."""
    await _requeue(DELIVER, webhook_id, (await webhook_view(webhook_id)).status, actor)


async def retry_failed_webhooks(limit: int, actor: str) -> list[str]:
    """Five new attempts for up to `limit` failed webhooks; their ids."""
    desk = await app.desk(actor)
    return list((await desk.requeue(JobFilter(kind=DELIVER, states=("dead",)), limit=limit)).ids)


async def clean_up_now(actor: str) -> dict[str, Any]:
    """Start the clean-up without waiting for its time."""
    fire = await (await app.desk(actor)).calendar.trigger(CLEAN_UP)
    return {"job_id": fire.job_id}


async def _requeue(kind: str, job_id: str, status: str, actor: str) -> None:
    desk = await app.desk(actor)
    changed = await desk.requeue(JobFilter(ids=(job_id,), kind=kind, states=("dead",)))
    if changed.unchanged:
        raise ConflictError(f"{job_id} cannot be retried: another audit of its page is running")
    if not changed.ids:
        raise ConflictError(f"{job_id} is {status}: only failed jobs can be retried")

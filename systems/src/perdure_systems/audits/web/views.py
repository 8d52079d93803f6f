"""An audit as the API and the page show it: the job and its steps, in the words of this system."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime
from http import HTTPStatus
from typing import Any, Final, NamedTuple

import msgspec

from perdure import ArgumentError, Desk, JobFilter, JobView, NotFoundError, Page
from perdure_systems.audits.jobs import AUDIT, DELIVER, DELIVERY_WORDS, WORDS, app, records
from perdure_systems.audits.results import HandedOver, PageSpeed, Report, Screenshots
from perdure_systems.kit.web import PageRequest, Problem

STEPS: Final = ("pagespeed", "screenshots", "pdf", "webhook")
_WEBHOOKS_SHOWN: Final = 50
_MODULE: Final = re.compile(r"^(?:\w+\.)+(?=[A-Z]\w*(?::|$))")


class StepView(msgspec.Struct, frozen=True):
    """How far one step is: pending, processing, completed, completed_with_warnings, failed or skipped."""

    name: str
    status: str
    started_at: datetime | None = None
    saved_at: datetime | None = None
    note: str | None = None


class DeliveryView(msgspec.Struct, frozen=True):
    """One request to the receiver of a webhook."""

    attempt: int
    status: str
    sent_at: datetime
    status_code: int | None
    seconds: float | None
    error: str | None


class WebhookView(msgspec.Struct, frozen=True):
    """A webhook with its deliveries."""

    id: str
    audit_id: str
    page: str
    url: str
    status: str
    attempts: int
    max_attempts: int | None
    next_attempt_at: datetime | None
    error: str | None
    created_at: datetime
    deliveries: list[DeliveryView]


class AuditView(msgspec.Struct, frozen=True):
    """One audit."""

    id: str
    url: str
    strategy: str
    status: str
    created_at: datetime
    last_attempt_at: datetime | None
    finished_at: datetime | None
    attempts: int
    max_attempts: int | None
    next_attempt_at: datetime | None
    error: str | None
    waiting_for: str | None
    warnings: list[str]
    processing_steps: list[StepView]
    pagespeed_data: PageSpeed | None
    screenshots_data: Screenshots | None
    report: Report | None
    report_path: str | None
    webhook_url: str | None
    webhooks: list[WebhookView]


class Listed(NamedTuple):
    """One page of jobs, and whether there are older ones."""

    jobs: tuple[JobView, ...]
    has_more: bool


async def audit_view(audit_id: str) -> AuditView:
    """All about one audit; `NotFoundError` if there is none."""
    desk = await app.desk("app:audits")
    detail = await _detail(desk, AUDIT, audit_id, "audit")
    job = detail.job
    kept = {step.key: step for step in detail.steps}
    results = {name: kept[name].result if name in kept else None for name in STEPS}
    shots = _read(results["screenshots"], Screenshots)
    handed = _read(results["webhook"], HandedOver)
    report = _read(results["pdf"], Report)
    steps: list[StepView] = []
    for name in STEPS:
        step = kept.get(name)
        if step is None:
            steps.append(StepView(name, _unreached(job, steps)))
            continue
        status, note = _status(name, str(step.state), step.note, shots, handed)
        steps.append(StepView(name, status, step.begun_at, step.changed_at, note))
    arguments = job.arguments
    return AuditView(
        id=job.id,
        url=arguments["url"],
        strategy=arguments.get("strategy", "mobile"),
        status=job.word or job.state,
        created_at=job.created_at,
        last_attempt_at=job.started_at,
        finished_at=job.finished_at,
        attempts=job.failures + job.crashes,
        max_attempts=job.max_attempts,
        next_attempt_at=job.due_at,
        error=plain_error(job.last_error),
        waiting_for=job.reason if job.state in {"paused", "waiting", "retrying"} else None,
        warnings=list(job.warnings),
        processing_steps=steps,
        pagespeed_data=_read(results["pagespeed"], PageSpeed),
        screenshots_data=shots,
        report=report,
        report_path=None if report is None else f"/api/v1/audits/{job.id}/report.pdf",
        webhook_url=arguments.get("webhook_url"),
        webhooks=await webhooks_of(desk, JobFilter(kind=DELIVER, tag=f"audit:{job.id}")),
    )


async def webhooks_of(desk: Desk, which: JobFilter) -> list[WebhookView]:
    """The webhooks that match, newest first, each with its deliveries."""
    return await webhook_views((await desk.jobs(which, Page(limit=_WEBHOOKS_SHOWN))).jobs)


async def webhook_views(jobs: Sequence[JobView]) -> list[WebhookView]:
    """The webhooks that these jobs are, each with its deliveries."""
    return [await _webhook(job) for job in jobs]


async def listed(desk: Desk, kind: str, status: str, page: PageRequest) -> Listed:
    """One page of the audits or webhooks, newest first; `status` is one of this system's words, or empty for all."""
    which = JobFilter(kind=kind)
    if status:
        try:
            which = await desk.meaning(status, kind=kind)
        except ArgumentError:
            words = ", ".join(dict.fromkeys({AUDIT: WORDS, DELIVER: DELIVERY_WORDS}[kind].values()))
            detail = f"status must be one of {words}, cancelled, got {status[:50]!r}"
            raise Problem(HTTPStatus.BAD_REQUEST, detail, field="status") from None
    found = await desk.jobs(which, Page(limit=page.size, number=page.number))
    return Listed(found.jobs, found.next is not None)


async def webhook_view(webhook_id: str) -> WebhookView:
    """One webhook; `NotFoundError` if there is none."""
    return await _webhook((await _detail(await app.desk("app:audits"), DELIVER, webhook_id, "webhook")).job)


async def _detail(desk: Desk, kind: str, job_id: str, noun: str) -> Any:
    try:
        detail = await desk.job(job_id, lines=0)
    except (NotFoundError, ArgumentError):  # what cannot be an id is the id of nothing
        raise NotFoundError(f"there is no {noun} {job_id[:100]!r}") from None
    if detail.job.kind != kind:
        raise NotFoundError(f"there is no {noun} {job_id[:100]!r}")
    return detail


async def _webhook(job: JobView) -> WebhookView:
    deliveries = [
        DeliveryView(one.attempt, one.status, one.sent_at, one.status_code or None, one.seconds, one.error)
        for one in await records.deliveries(webhook_id=job.id)
    ]
    return WebhookView(
        id=job.id,
        audit_id=job.arguments["audit_id"],
        page=msgspec.json.decode(job.arguments["body"])["url"],
        url=job.arguments["url"],
        status=job.word or job.state,
        attempts=job.failures + job.crashes,
        max_attempts=job.max_attempts,
        next_attempt_at=job.due_at,
        error=plain_error(job.last_error),
        created_at=job.created_at,
        deliveries=deliveries,
    )


def plain_error(error: str | None) -> str | None:
    """An error as people read it: the type without its module."""
    return None if error is None else _MODULE.sub("", error)


def _status(
    name: str, state: str, note: str | None, shots: Screenshots | None, handed: HandedOver | None
) -> tuple[str, str | None]:
    """The word for a step that was reached, and what there is to say about it."""
    if state == "given up":
        return "completed_with_warnings", note
    if state != "done":
        return "processing", note
    if name == "screenshots" and shots is not None and shots.errors:
        return "completed_with_warnings", "; ".join(f"{size}: {why}" for size, why in shots.errors.items())
    if name == "webhook" and handed is not None and handed.webhook_id is None:
        return "skipped", "no receiver is set"
    return "completed", None


def _unreached(job: JobView, before: list[StepView]) -> str:
    """The word for a step that is not kept yet: the first of them is under way, or has failed."""
    is_next = all(step.status in {"completed", "completed_with_warnings", "skipped"} for step in before)
    if is_next and job.state == "dead":
        return "failed"
    return "processing" if is_next and job.state in {"running", "retrying", "paused", "waiting"} else "pending"


def _read(text: str | None, as_type: type[Any]) -> Any:
    return None if text is None else msgspec.json.decode(text, type=as_type)

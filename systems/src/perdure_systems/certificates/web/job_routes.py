"""The API of jobs, in the original's words: list, show, CSR, approve, reject, retry, cancel."""

from __future__ import annotations

from http import HTTPStatus
from typing import Annotated, Any, Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from perdure import ConflictError, JobFilter, JobState, JobView, NotFoundError, Page, Permanent
from perdure_systems.certificates.jobs import APPROVAL, ISSUE, STATUS_OF, app, csr_event, desk, status_of
from perdure_systems.certificates.signing import read_csr
from perdure_systems.kit.web import JsonResponse, Problem, read_body, read_page

AWAITING: Final = ("AwaitingCSR", "AwaitingApproval")
_STATUS_DETAILS: Final = ("old_status", "new_status")


class Csr(msgspec.Struct, forbid_unknown_fields=True):
    """What an agent sends."""

    csr: Annotated[str, msgspec.Meta(max_length=20_000)]


class Answer(msgspec.Struct, forbid_unknown_fields=True):
    """What an approver may add."""

    by: Annotated[str, msgspec.Meta(min_length=1, max_length=100)] = "operator"
    note: Annotated[str, msgspec.Meta(max_length=1000)] | None = None


def job_fields(view: JobView) -> dict[str, Any]:
    """A job as the API shows it, in the original's words."""
    asked: dict[str, Any] = msgspec.json.decode(view.meta or "{}")
    return {
        "id": str(view.id),
        "certificate_id": (view.arguments or {}).get("certificate"),
        "status": status_of(view),
        "attempts": view.failures + view.crashes,
        "max_attempts": view.max_attempts,
        "last_error": view.last_error,
        "next_retry_at": view.due_at if view.state == JobState.RETRYING else None,
        "expires_at": view.due_at if view.state == JobState.WAITING else None,
        "requested_by": asked.get("requested_by"),
        "because": asked.get("because"),
        "can_retry": can_retry(view),
        "created_at": view.created_at,
        "finished_at": view.finished_at,
    }


async def find_job(job_id: str) -> JobView:
    """A job of this system; jobs of other systems are not found."""
    job = (await (await desk()).job(job_id)).job
    if job.kind != ISSUE:
        raise NotFoundError(f"job {job_id} is none of a certificate")
    return job


async def failed_attempts(job_id: str) -> list[dict[str, Any]]:
    """When each failed attempt ended, and why it failed."""
    attempts = (await (await desk()).job(job_id)).attempts
    return [{"at": one.finished_at, "error": one.message} for one in attempts]


async def trail_of(job_id: str) -> list[dict[str, Any]]:
    """What happened to a job, newest first, in the original's words for states."""
    trail = await (await desk()).audit(job=job_id)
    return [
        {
            "at": entry.at,
            "actor": entry.actor,
            "actor_type": str(entry.actor_type),
            "action": entry.action,
            "details": {
                key: STATUS_OF.get(value, value) if key in _STATUS_DETAILS else value
                for key, value in entry.details.items()
            },
        }
        for entry in trail.entries
    ]


async def list_jobs(http: Request) -> Response:
    """Jobs, newest first; `status` filters by the original's words."""
    asked = read_page(http)
    word = http.query_params.get("status")
    if word in AWAITING:
        waiting = [job for job in await waiting_jobs() if status_of(job) == word]
        found = waiting[(asked.number - 1) * asked.size : asked.number * asked.size]
    else:
        which = await (await desk()).meaning([word], ISSUE) if word else JobFilter(kind=ISSUE)
        found = list((await (await desk()).jobs(which, Page(limit=asked.size, number=asked.number))).jobs)
    shown = [job_fields(job) for job in found]
    return JsonResponse({"jobs": shown, "page": asked.number, "per_page": asked.size})


async def waiting_jobs() -> list[JobView]:
    """All jobs that wait for a person: what they wait for is no filter of the database."""
    found: list[JobView] = []
    page = await (await desk()).jobs(JobFilter(kind=ISSUE, states="waiting"), Page(limit=500))
    found.extend(page.jobs)
    while page.next is not None:
        page = await (await desk()).jobs(JobFilter(kind=ISSUE, states="waiting"), Page(limit=500, before=page.next))
        found.extend(page.jobs)
    return found


async def show_job(http: Request) -> Response:
    """One job, with every failed attempt and its audit trail."""
    job = await find_job(http.path_params["id"])
    attempts, trail = await failed_attempts(str(job.id)), await trail_of(str(job.id))
    return JsonResponse({**job_fields(job), "failed_attempts": attempts, "audit": trail})


async def submit_csr(http: Request) -> Response:
    """An agent's CSR, for a job that waits for one; the first one counts."""
    given = await read_body(http, Csr)
    try:
        read_csr(given.csr)
    except Permanent as error:
        raise Problem(HTTPStatus.BAD_REQUEST, str(error), field="csr") from None
    job = await find_job(http.path_params["id"])
    if status_of(job) != "AwaitingCSR":
        raise Problem(HTTPStatus.CONFLICT, f"job {job.id} is {status_of(job)}: it waits for no CSR")
    await app.emit(csr_event(str(job.id)), given.csr)
    return JsonResponse({"id": str(job.id), "status": "Pending"}, HTTPStatus.ACCEPTED)


async def approve(http: Request) -> Response:
    """Approve a job that waits for approval."""
    return await _answer(http, approved=True)


async def reject(http: Request) -> Response:
    """Refuse a job that waits for approval; it fails permanently."""
    return await _answer(http, approved=False)


async def _answer(http: Request, *, approved: bool) -> Response:
    given = await read_body(http, Answer)
    job = await find_job(http.path_params["id"])
    if status_of(job) != "AwaitingApproval":
        raise Problem(HTTPStatus.CONFLICT, f"job {job.id} is {status_of(job)}: it waits for no approval")
    answering = await app.desk(given.by)
    await answering.answer(str(job.id), APPROVAL, approved=approved, note=given.note or None)
    await answering.record("approve" if approved else "reject", job=str(job.id), details={"note": given.note or ""})
    return JsonResponse({"id": str(job.id), "approved": approved, "by": given.by})


async def retry_job(http: Request) -> Response:
    """Retry a job now: one that waits for its next attempt, or one that failed, with all its attempts again.

    It keeps its CSR and its approval. So a job that was refused or has expired would fail again.
    """
    job = await find_job(http.path_params["id"])
    if not can_retry(job):
        again = f"/api/v1/certificates/{(job.arguments or {}).get('certificate')}/renew"
        raise ConflictError(
            f"job {job.id} is {status_of(job)} and cannot be retried: request a new one with POST {again}"
        )
    if job.state == JobState.RETRYING:
        await (await desk()).run_now(str(job.id))
    else:
        await (await desk()).requeue(str(job.id))
    return JsonResponse({"id": str(job.id), "status": "Pending"})


async def cancel_job(http: Request) -> Response:
    """Cancel a job."""
    job = await find_job(http.path_params["id"])
    await (await desk()).cancel(str(job.id), why="cancelled by an operator")
    return JsonResponse({"id": str(job.id), "status": "Cancelled"})


def can_retry(job: JobView) -> bool:
    """Whether another attempt may help. It does not if the job failed at once: refused, expired, or deleted."""
    return job.state == JobState.RETRYING or (job.state == JobState.DEAD and job.reason != "permanent failure")

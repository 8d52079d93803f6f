"""The API and the pages of the certificate system."""

from __future__ import annotations

import uuid
from http import HTTPStatus
from pathlib import Path
from typing import Annotated, Any, Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from perdure import JobFilter, JobView, Page, PerdureError, Permanent
from perdure_systems.certificates.jobs import APPROVAL, ISSUE, app, csr_event, database, request, status_of
from perdure_systems.certificates.loops import desk, now
from perdure_systems.certificates.records import (
    ALL,
    Agent,
    Certificate,
    Endpoint,
    Found,
    LoopRun,
    add_certificate,
    note_agent,
)
from perdure_systems.certificates.settings import read_loops
from perdure_systems.certificates.signing import read_csr
from perdure_systems.kit.pages import Link, Pages
from perdure_systems.kit.web import JsonResponse, Problem, read_body, read_page

Name = Annotated[str, msgspec.Meta(min_length=1, max_length=253, pattern=r"^[A-Za-z0-9*]([A-Za-z0-9.-]*[A-Za-z0-9])?$")]
_SHOWN: Final = 50
_AWAITING: Final = ("AwaitingCSR", "AwaitingApproval")
_STATE_CLASS: Final = {
    "Pending": "ready", "Running": "running", "Failed": "dead", "Completed": "done", "Cancelled": "cancelled",
    "AwaitingCSR": "waiting", "AwaitingApproval": "waiting", "active": "done", "requested": "ready", "failed": "dead",
    "expired": "dead", "online": "done", "offline": "dead", "healthy": "done", "unreachable": "dead",
}  # fmt: skip

pages = Pages(
    "Certificates",
    Path(__file__).parent / "templates",
    [Link("Certificates", "/"), Link("Jobs", "/jobs"), Link("Loops", "/loops"), Link("Found", "/found")],
)


class NewCertificate(msgspec.Struct, forbid_unknown_fields=True):
    """What `POST /api/v1/certificates` takes."""

    common_name: Name
    owner: Annotated[str, msgspec.Meta(min_length=1, max_length=200)]
    sans: list[Name] = []
    lifetime_hours: Annotated[int, msgspec.Meta(ge=1, le=8760)] = 2160
    needs_csr: bool = False
    needs_approval: bool = False


class Csr(msgspec.Struct, forbid_unknown_fields=True):
    """What an agent sends."""

    csr: str


class Answer(msgspec.Struct, forbid_unknown_fields=True):
    """What an approver may add."""

    by: Annotated[str, msgspec.Meta(min_length=1, max_length=100)] = "operator"
    note: str | None = None


def job_fields(view: JobView) -> dict[str, Any]:
    """A job as the API shows it, in the original's words."""
    return {
        "id": str(view.id),
        "certificate_id": (view.arguments or {}).get("certificate"),
        "status": status_of(view),
        "attempts": view.failures + view.crashes,
        "max_attempts": view.max_attempts,
        "last_error": view.last_error,
        "next_retry_at": view.due_at if view.state == "retrying" else None,
        "expires_at": view.due_at if view.state == "waiting" else None,
        "created_at": view.created_at,
        "finished_at": view.finished_at,
    }


async def create_certificate(http: Request) -> Response:
    """Store a certificate and its job in one transaction."""
    given = await read_body(http, NewCertificate)
    certificate = Certificate(
        id=uuid.uuid4().hex,
        status="requested",
        serial=None,
        pem=None,
        not_after=None,
        created_at=await now(),
        **msgspec.structs.asdict(given),
    )
    async with database.transaction() as session:
        if not await add_certificate(session, certificate):
            detail = f"common_name {given.common_name!r} has a certificate already"
            raise Problem(HTTPStatus.CONFLICT, detail, field="common_name")
        job = await request(session, certificate.id)
    return JsonResponse({"id": certificate.id, "job_id": job, "status": "requested"}, HTTPStatus.CREATED)


async def list_certificates(_: Request) -> Response:
    """All certificates by name."""
    return JsonResponse({"certificates": await database.all(Certificate, ALL)})


async def list_jobs(http: Request) -> Response:
    """Jobs, newest first; `status` filters by the original's words."""
    asked = read_page(http)
    word = http.query_params.get("status")
    if word in _AWAITING:
        waiting = [job for job in await _waiting() if status_of(job) == word]
        found = waiting[(asked.number - 1) * asked.size : asked.number * asked.size]
    else:
        which = await (await desk()).meaning([word], ISSUE) if word else JobFilter(kind=ISSUE)
        found = list((await (await desk()).jobs(which, Page(limit=asked.size, number=asked.number))).jobs)
    shown = [job_fields(job) for job in found]
    return JsonResponse({"jobs": shown, "page": asked.number, "per_page": asked.size})


async def _waiting() -> list[JobView]:
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
    detail = await (await desk()).job(http.path_params["id"])
    trail = await (await desk()).audit(job=str(detail.job.id))
    attempts = [{"at": one.finished_at, "error": one.message} for one in detail.attempts]
    audit = [
        {"at": entry.at, "actor": entry.actor, "actor_type": str(entry.actor_type), "action": entry.action,
         "details": entry.details}
        for entry in trail.entries
    ]  # fmt: skip
    return JsonResponse({**job_fields(detail.job), "failed_attempts": attempts, "audit": audit})


async def submit_csr(http: Request) -> Response:
    """An agent's CSR, for a job that waits for one; the first one counts."""
    given = await read_body(http, Csr)
    try:
        read_csr(given.csr)
    except Permanent as error:
        raise Problem(HTTPStatus.BAD_REQUEST, str(error), field="csr") from None
    job = (await (await desk()).job(http.path_params["id"])).job
    if status_of(job) != "AwaitingCSR":
        raise Problem(HTTPStatus.CONFLICT, f"job {job.id} is {status_of(job)}: it waits for no CSR")
    await app.emit(csr_event(str(job.id)), given.csr)
    return JsonResponse({"id": str(job.id), "status": "Pending"}, HTTPStatus.ACCEPTED)


async def approve(http: Request) -> Response:
    """Let a job that waits for approval go on."""
    return await _answer(http, approved=True)


async def reject(http: Request) -> Response:
    """Refuse a job that waits for approval; it fails for good."""
    return await _answer(http, approved=False)


async def _answer(http: Request, *, approved: bool) -> Response:
    given = await read_body(http, Answer)
    answering = await app.desk(given.by)
    await answering.answer(http.path_params["id"], APPROVAL, approved=approved, note=given.note)
    return JsonResponse({"id": http.path_params["id"], "approved": approved})


async def retry_job(http: Request) -> Response:
    """Give a job that has failed for good all its attempts again."""
    await (await desk()).requeue(http.path_params["id"])
    return JsonResponse({"id": http.path_params["id"], "status": "Pending"})


async def cancel_job(http: Request) -> Response:
    """Call a job off."""
    await (await desk()).cancel(http.path_params["id"], why="cancelled by an operator")
    return JsonResponse({"id": http.path_params["id"], "status": "Cancelled"})


async def heartbeat(http: Request) -> Response:
    """An agent shows that it is there."""
    at = await now()
    async with database.transaction() as session:
        await note_agent(session, http.path_params["agent"][:100], at)
    return JsonResponse({"status": "online"})


async def health(_: Request) -> Response:
    """Whether the database answers."""
    try:
        await database.all(LoopRun, "SELECT * FROM certificate_loop")
    except (PerdureError, OSError) as error:
        raise Problem(HTTPStatus.SERVICE_UNAVAILABLE, f"the database does not answer: {error}") from None
    return JsonResponse({"status": "ok"})


async def certificates_page(_: Request) -> Response:
    """The certificates, and the agents."""
    agents = await database.all(Agent, "SELECT * FROM certificate_agent ORDER BY id")
    certificates = await database.all(Certificate, ALL)
    return pages.render("certificates.html", here="/", certificates=certificates, agents=agents, colours=_STATE_CLASS)


async def jobs_page(_: Request) -> Response:
    """The newest jobs, with what can be done to each."""
    views = (await (await desk()).jobs(JobFilter(kind=ISSUE), Page(limit=_SHOWN))).jobs
    names = {one.id: one.common_name for one in await database.all(Certificate, ALL)}
    jobs = [job_fields(view) for view in views]
    return pages.render("jobs.html", here="/jobs", jobs=jobs, names=names, colours=_STATE_CLASS)


async def loops_page(_: Request) -> Response:
    """The loops, when each last ran, and the endpoints that they look at."""
    runs = {run.name: run for run in await database.all(LoopRun, "SELECT * FROM certificate_loop")}
    endpoints = await database.all(Endpoint, "SELECT * FROM certificate_endpoint ORDER BY address")
    loops = list(read_loops().values())
    return pages.render("loops.html", here="/loops", loops=loops, runs=runs, endpoints=endpoints, colours=_STATE_CLASS)


async def found_page(_: Request) -> Response:
    """What the scans have found."""
    found = await database.all(Found, "SELECT * FROM certificate_found ORDER BY not_after LIMIT 500")
    return pages.render("found.html", here="/found", found=found)


ROUTES: Final = [
    Route("/api/v1/certificates", create_certificate, methods=["POST"]),
    Route("/api/v1/certificates", list_certificates),
    Route("/api/v1/jobs", list_jobs),
    Route("/api/v1/jobs/{id}", show_job),
    Route("/api/v1/jobs/{id}/csr", submit_csr, methods=["POST"]),
    Route("/api/v1/jobs/{id}/approve", approve, methods=["POST"]),
    Route("/api/v1/jobs/{id}/reject", reject, methods=["POST"]),
    Route("/api/v1/jobs/{id}/retry", retry_job, methods=["POST"]),
    Route("/api/v1/jobs/{id}/cancel", cancel_job, methods=["POST"]),
    Route("/api/v1/agents/{agent}/heartbeat", heartbeat, methods=["POST"]),
    Route("/health", health),
    Route("/", certificates_page),
    Route("/jobs", jobs_page),
    Route("/loops", loops_page),
    Route("/found", found_page),
]

"""All routes of the certificate system."""

from __future__ import annotations

from http import HTTPStatus
from typing import Annotated, Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from perdure_systems.certificates.jobs import database, now
from perdure_systems.certificates.records import note_agent
from perdure_systems.certificates.web import certificate_routes as certificates
from perdure_systems.certificates.web import job_routes as jobs
from perdure_systems.certificates.web import views
from perdure_systems.kit.web import JsonResponse, Problem

AgentName = Annotated[str, msgspec.Meta(min_length=1, max_length=100, pattern=r"^[A-Za-z0-9._-]+$")]


async def heartbeat(http: Request) -> Response:
    """An agent shows that it is there."""
    name = http.path_params["agent"]
    try:
        msgspec.convert(name, AgentName)
    except msgspec.ValidationError:
        detail = f"agent must be 1 to 100 letters, digits, dots, dashes and underscores, got {name[:50]!r}"
        raise Problem(HTTPStatus.BAD_REQUEST, detail, field="agent") from None
    at = await now()
    async with database.transaction() as session:
        await note_agent(session, name, at)
    return JsonResponse({"agent": name, "status": "online"})


ROUTES: Final = [
    Route("/api/v1/certificates", certificates.create_certificate, methods=["POST"]),
    Route("/api/v1/certificates", certificates.list_certificates),
    Route("/api/v1/certificates/{id}", certificates.show_certificate),
    Route("/api/v1/certificates/{id}", certificates.remove_certificate, methods=["DELETE"]),
    Route("/api/v1/certificates/{id}/chain.pem", certificates.download_chain),
    Route("/api/v1/certificates/{id}/renew", certificates.renew_certificate, methods=["POST"]),
    Route("/api/v1/jobs", jobs.list_jobs),
    Route("/api/v1/jobs/{id}", jobs.show_job),
    Route("/api/v1/jobs/{id}/csr", jobs.submit_csr, methods=["POST"]),
    Route("/api/v1/jobs/{id}/approve", jobs.approve, methods=["POST"]),
    Route("/api/v1/jobs/{id}/reject", jobs.reject, methods=["POST"]),
    Route("/api/v1/jobs/{id}/retry", jobs.retry_job, methods=["POST"]),
    Route("/api/v1/jobs/{id}/cancel", jobs.cancel_job, methods=["POST"]),
    Route("/api/v1/agents/{agent}/heartbeat", heartbeat, methods=["POST"]),
    Route("/", views.certificates_page),
    Route("/certificates/{id}", views.certificate_page),
    Route("/jobs", views.jobs_page),
    Route("/jobs/{id}", views.job_page),
    Route("/loops", views.loops_page),
    Route("/found", views.found_page),
]

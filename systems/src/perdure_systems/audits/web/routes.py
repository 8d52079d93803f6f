"""The API: requests, results, figures, webhooks. All of it needs the bearer token."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import wraps
from http import HTTPStatus
from typing import Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from perdure import SettingsError
from perdure_systems.audits import settings, storage
from perdure_systems.audits.addresses import AddressRefused, AddressUnknown, check_address
from perdure_systems.audits.intake import create_or_find
from perdure_systems.audits.jobs import AUDIT, DELIVER, app
from perdure_systems.audits.pipeline.report import REPORT_FILE
from perdure_systems.audits.results import Strategy
from perdure_systems.audits.web import actions
from perdure_systems.audits.web.stats import stats
from perdure_systems.audits.web.views import audit_view, listed, webhook_view, webhook_views
from perdure_systems.kit.guards import bearer_of
from perdure_systems.kit.web import JsonResponse, Problem, read_body, read_number, read_page

Endpoint = Callable[[Request], Awaitable[Response]]
_PAGE_SIZE_LIMIT: Final = 100


class ScanRequest(msgspec.Struct, forbid_unknown_fields=True):
    """What may be asked for."""

    url: str
    strategy: Strategy = "mobile"
    webhook_url: str | None = None


def with_token(endpoint: Endpoint) -> Endpoint:
    """Answer only requests that carry the bearer token."""

    @wraps(endpoint)
    async def guarded(request: Request) -> Response:
        try:
            token = settings.api_token()
        except SettingsError as error:
            raise Problem(HTTPStatus.SERVICE_UNAVAILABLE, str(error)) from None
        if bearer_of(request, {token: "api"}) is None:
            raise Problem(
                HTTPStatus.UNAUTHORIZED, "send the header Authorization: Bearer TOKEN with the service's token"
            )
        return await endpoint(request)

    return guarded


async def take_scan(request: Request) -> Response:
    """Take a request: 202 with the audit that stands for it. Nothing is stored if an address is refused."""
    wanted = await read_body(request, ScanRequest)
    url = await allowed("url", wanted.url)
    webhook_url = await allowed("webhook_url", wanted.webhook_url) if wanted.webhook_url else None
    taken = await create_or_find(url, wanted.strategy, webhook_url)
    path = f"/api/v1/audits/{taken.id}"
    answer = {
        "id": taken.id,
        "status": taken.status,
        "created": taken.is_new,
        "url": url,
        "strategy": wanted.strategy,
        "webhook_url": taken.webhook_url,
        "href": path,
    }
    return JsonResponse(answer, HTTPStatus.ACCEPTED, headers={"Location": path})


async def allowed(field: str, url: str) -> str:
    """The normal form of an address that may be called; a 400 names the field otherwise."""
    try:
        return await check_address(url)
    except (AddressRefused, AddressUnknown) as error:
        raise Problem(HTTPStatus.BAD_REQUEST, f"{field} {error}", field=field) from None


async def list_audits(request: Request) -> Response:
    """The audits, newest first; `status` is one of this system's words."""
    page = read_page(request, size=20, largest=_PAGE_SIZE_LIMIT)
    found = await listed(await app.desk("app:audits"), AUDIT, request.query_params.get("status", ""), page)
    rows = [
        {
            "id": job.id,
            "url": job.arguments["url"],
            "strategy": job.arguments.get("strategy", "mobile"),
            "status": job.word or job.state,
            "created_at": job.created_at,
            "finished_at": job.finished_at,
            "warnings": job.warnings,
            "href": f"/api/v1/audits/{job.id}",
        }
        for job in found.jobs
    ]
    return JsonResponse({"audits": rows, "page": page.number, "per_page": page.size})


async def show_audit(request: Request) -> Response:
    """One audit with its steps, data and webhooks."""
    return JsonResponse(await audit_view(request.path_params["id"]))


async def retry_audit(request: Request) -> Response:
    """Try a failed audit again."""
    await actions.retry_audit(request.path_params["id"], "app:audits-api")
    return JsonResponse({"id": request.path_params["id"], "status": "pending"}, HTTPStatus.ACCEPTED)


async def read_report(request: Request) -> Response:
    """The printed report."""
    audit = await audit_view(request.path_params["id"])
    if audit.report is None:
        raise Problem(HTTPStatus.NOT_FOUND, f"audit {audit.id} has no report yet: it is {audit.status}")
    headers = {"Content-Disposition": f'inline; filename="audit-{audit.id}.pdf"'}
    return Response(storage.load(audit.id, REPORT_FILE), media_type="application/pdf", headers=headers)


async def read_screenshot(request: Request) -> Response:
    """One of the screenshots."""
    audit, size = await audit_view(request.path_params["id"]), request.path_params["size"]
    taken = audit.screenshots_data.taken if audit.screenshots_data else {}
    if size not in taken:
        raise Problem(HTTPStatus.NOT_FOUND, f"audit {audit.id} has no {size!r} screenshot")
    return Response(storage.load(audit.id, taken[size].file), media_type="image/jpeg")


async def show_stats(_: Request) -> Response:
    """Figures."""
    return JsonResponse(await stats())


async def list_webhooks(request: Request) -> Response:
    """The webhooks, newest first, with each delivery."""
    page = read_page(request, size=20, largest=_PAGE_SIZE_LIMIT)
    found = await listed(await app.desk("app:audits"), DELIVER, request.query_params.get("status", ""), page)
    return JsonResponse({"webhooks": await webhook_views(found.jobs), "page": page.number, "per_page": page.size})


async def show_webhook(request: Request) -> Response:
    """One webhook with each delivery."""
    return JsonResponse(await webhook_view(request.path_params["id"]))


async def retry_webhook(request: Request) -> Response:
    """Try a failed webhook again."""
    await actions.retry_webhook(request.path_params["id"], "app:audits-api")
    return JsonResponse({"id": request.path_params["id"], "status": "pending"}, HTTPStatus.ACCEPTED)


async def retry_failed(request: Request) -> Response:
    """Try failed webhooks again, 50 at most."""
    limit = read_number(
        request, "limit", actions.RETRIED_WEBHOOKS_LIMIT, at_least=1, at_most=actions.RETRIED_WEBHOOKS_LIMIT
    )
    ids = await actions.retry_failed_webhooks(limit, "app:audits-api")
    return JsonResponse({"retried": len(ids), "ids": ids}, HTTPStatus.ACCEPTED)


async def prune(_: Request) -> Response:
    """Start the clean-up now."""
    return JsonResponse(await actions.clean_up_now("app:audits-api"), HTTPStatus.ACCEPTED)


API: Final[list[BaseRoute]] = [
    Route("/api/v1/scan", with_token(take_scan), methods=["POST"]),
    Route("/api/v1/stats", with_token(show_stats)),
    Route("/api/v1/audits", with_token(list_audits)),
    Route("/api/v1/audits/stats", with_token(show_stats)),
    Route("/api/v1/audits/{id}", with_token(show_audit)),
    Route("/api/v1/audits/{id}/retry", with_token(retry_audit), methods=["POST"]),
    Route("/api/v1/audits/{id}/report.pdf", with_token(read_report)),
    Route("/api/v1/audits/{id}/screenshots/{size}.jpg", with_token(read_screenshot)),
    Route("/api/v1/webhooks", with_token(list_webhooks)),
    Route("/api/v1/webhooks/retry-failed", with_token(retry_failed), methods=["POST"]),
    Route("/api/v1/webhooks/prune", with_token(prune), methods=["POST"]),
    Route("/api/v1/webhooks/{id}", with_token(show_webhook)),
    Route("/api/v1/webhooks/{id}/retry", with_token(retry_webhook), methods=["POST"]),
]

"""The pages: all audits with how far they are, one audit, the webhooks, the figures.

They are for operators. With `AUDITS_PAGE_PASSWORD` set they ask for it; any user name will do.
"""

from __future__ import annotations

import base64
import binascii
import hmac
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final

import msgspec
from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import BaseRoute, Route

from perdure_systems.audits import settings
from perdure_systems.audits.jobs import AUDIT, DELIVER, QUEUES, app
from perdure_systems.audits.pipeline.gauges import gauges
from perdure_systems.audits.pipeline.report import in_bytes
from perdure_systems.audits.web import actions
from perdure_systems.audits.web.routes import Endpoint, read_report, read_screenshot, take_scan
from perdure_systems.audits.web.stats import stats
from perdure_systems.audits.web.views import AuditView, audit_view, listed, webhook_views
from perdure_systems.kit.pages import Link, Pages
from perdure_systems.kit.web import JsonResponse, read_page

_HERE: Final = Path(__file__).parents[1]
_PAGES: Final = Pages("Site audits", _HERE / "templates", (), jobs=f"queue:{QUEUES[0]}")
_ROWS_PER_PAGE: Final = 15
_CHIPS: Final = {
    "pending": "ready",
    "processing": "running",
    "completed": "done",
    "completed_with_warnings": "retrying",
    "failed": "dead",
    "cancelled": "cancelled",
    "skipped": "cancelled",
    "sending": "running",
    "retrying": "retrying",
    "delivered": "done",
    "unknown": "retrying",
    "ok": "done",
    "warning": "retrying",
    "error": "dead",
}
_TABS: Final = (
    ("", "All"),
    ("pending", "Pending"),
    ("processing", "Processing"),
    ("completed", "Completed"),
    ("failed", "Failed"),
)
_WEBHOOK_TABS: Final = (("", "All"), ("retrying", "Retrying"), ("delivered", "Delivered"), ("failed", "Failed"))


class Row(msgspec.Struct, frozen=True):
    """One line of the list."""

    audit: AuditView
    score: Any


def with_password(endpoint: Endpoint) -> Endpoint:
    """Ask for the password, if one is set."""

    async def guarded(request: Request) -> Response:
        password = settings.page_password()
        if password and not hmac.compare_digest(_password_of(request).encode(), password.encode()):
            headers = {"WWW-Authenticate": 'Basic realm="site audits"'}
            return Response("the password is needed", HTTPStatus.UNAUTHORIZED, headers, media_type="text/plain")
        return await endpoint(request)

    return guarded


def _password_of(request: Request) -> str:
    scheme, _, given = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() != "basic":
        return ""
    try:
        return base64.b64decode(given, validate=True).decode().partition(":")[2]
    except (binascii.Error, UnicodeDecodeError):
        return ""


async def show_audits(request: Request) -> Response:
    """All audits, newest first."""
    page = read_page(request, size=_ROWS_PER_PAGE, largest=50)
    desk = await app.desk("app:audits")
    status = request.query_params.get("status", "")
    found = await listed(desk, AUDIT, status, page)
    rows = [_row(await audit_view(job.id)) for job in found.jobs]
    figures = await stats()
    return _PAGES.render(
        "audits.html",
        here="/",
        links=_links(figures),
        rows=rows,
        figures=figures,
        tabs=_TABS,
        status=status,
        number=page.number,
        more=found.has_more,
        chips=_CHIPS,
    )


async def show_one(request: Request) -> Response:
    """One audit."""
    audit = await audit_view(request.path_params["id"])
    return _PAGES.render(
        "audit.html",
        here="/",
        links=_links(await stats()),
        audit=audit,
        gauges=gauges(audit.pagespeed_data.scores) if audit.pagespeed_data else [],
        chips=_CHIPS,
        in_bytes=in_bytes,
    )


async def show_webhooks(request: Request) -> Response:
    """All webhooks with their deliveries."""
    page = read_page(request, size=_ROWS_PER_PAGE, largest=50)
    desk = await app.desk("app:audits")
    status = request.query_params.get("status", "")
    found = await listed(desk, DELIVER, status, page)
    figures = await stats()
    return _PAGES.render(
        "webhooks.html",
        here="/webhooks",
        links=_links(figures),
        webhooks=await webhook_views(found.jobs),
        figures=figures,
        tabs=_WEBHOOK_TABS,
        status=status,
        number=page.number,
        more=found.has_more,
        chips=_CHIPS,
    )


async def show_figures(_: Request) -> Response:
    """Counts, races and the quota."""
    figures = await stats()
    return _PAGES.render("figures.html", here="/figures", links=_links(figures), figures=figures)


async def retry_audit(request: Request) -> Response:
    """Try a failed audit again."""
    await actions.retry_audit(request.path_params["id"], "page")
    return JsonResponse({}, HTTPStatus.ACCEPTED)


async def retry_webhook(request: Request) -> Response:
    """Try a failed webhook again."""
    await actions.retry_webhook(request.path_params["id"], "page")
    return JsonResponse({}, HTTPStatus.ACCEPTED)


async def retry_failed(_: Request) -> Response:
    """Try up to 50 failed webhooks again."""
    ids = await actions.retry_failed_webhooks(actions.RETRIED_WEBHOOKS_LIMIT, "page")
    return JsonResponse({"retried": len(ids)}, HTTPStatus.ACCEPTED)


async def style(_: Request) -> Response:
    """The style sheet of these pages."""
    return FileResponse(_HERE / "templates" / "audits.css", media_type="text/css")


def _row(audit: AuditView) -> Row:
    rings = gauges(audit.pagespeed_data.scores) if audit.pagespeed_data else []
    return Row(audit, rings[0] if rings else None)


def _links(figures: dict[str, Any]) -> list[Link]:
    failed, undelivered = figures["audits"]["failed"], figures["webhooks"]["failed"]
    return [
        Link("Audits", "/", failed or None, is_urgent=True),
        Link("Webhooks", "/webhooks", undelivered or None, is_urgent=True),
        Link("Figures", "/figures"),
    ]


PAGES: Final[list[BaseRoute]] = [
    Route("/", with_password(show_audits)),
    Route("/audits", with_password(take_scan), methods=["POST"]),
    Route("/audits.css", style),
    Route("/audits/{id}", with_password(show_one)),
    Route("/audits/{id}/retry", with_password(retry_audit), methods=["POST"]),
    Route("/audits/{id}/report.pdf", with_password(read_report)),
    Route("/audits/{id}/{size}.jpg", with_password(read_screenshot)),
    Route("/webhooks", with_password(show_webhooks)),
    Route("/webhooks/retry-failed", with_password(retry_failed), methods=["POST"]),
    Route("/webhooks/{id}/retry", with_password(retry_webhook), methods=["POST"]),
    Route("/figures", with_password(show_figures)),
]

"""Responses to refused requests: problem details (RFC 9457) for the API, JSON-RPC errors for agents, else a page."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import Final
from urllib.parse import quote

import msgspec
from starlette.responses import RedirectResponse, Response

from perdure.surfaces.access.requests.visit import Visit

PROBLEM: Final = "application/problem+json"
_SERVER_ERROR_CODE: Final = -32_000  # JSON-RPC leaves this code to servers
_PAGE: Final = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark"><title>{title} · perdure</title>{head}</head>
<body class="alone"><main class="panel login"><h1>{title}</h1><p>{detail}</p>{links}</main></body></html>
"""


class Refused(Exception):  # noqa: N818 - reads as what happened
    """A refused request: status, title and what to do."""

    def __init__(self, status: int, title: str, detail: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(detail)
        self.status = status
        self.title = title
        self.detail = detail
        self.headers = dict(headers or {})


def refusal(visit: Visit, refused: Refused, *, style: str = "") -> Response:
    """The response: a problem for programs, a page for browsers; `style` is the path of the page's style sheet.

    A page with Retry-After reloads itself.
    """
    if visit.is_mcp:
        return rpc_error(refused)
    if visit.is_of_program or not visit.wants_page:
        return problem(refused.status, refused.title, refused.detail, refused.headers)
    head, again = _link_to(visit, style), ""
    if visit.method == "GET" and (wait := refused.headers.get("Retry-After")):
        head += f'<meta http-equiv="refresh" content="{escape(wait)}">'
        again = f'<p class="soft small">This page reloads every {escape(wait)} seconds.</p>'
    links = again + f'<p><a class="btn" href="{escape(visit.home)}">Overview</a></p>'
    page = _PAGE.format(title=escape(refused.title), detail=escape(refused.detail), head=head, links=links)
    return Response(page, refused.status, refused.headers, "text/html")


def to_login(visit: Visit, *, style: str = "") -> Response:
    """Redirect a caller without a session to the login page, which leads back to this URL."""
    where = visit.at("/login")
    if visit.is_fragment:  # the script would follow a redirect and put the login page into a table row
        return problem(401, "Unauthorized", "The session has ended: log in again.", {"HX-Redirect": where})
    if visit.method == "GET" and visit.wants_page:
        return RedirectResponse(f"{where}?next={quote(visit.url, safe='/')}", 303)
    detail = f"The session has ended, or there was none: log in at {where} and retry."
    return refusal(visit, Refused(401, "Unauthorized", detail), style=style)


def problem(status: int, title: str, detail: str, headers: Mapping[str, str] | None = None) -> Response:
    """A problem as RFC 9457 describes it."""
    body = {"type": "about:blank", "title": title, "status": status, "detail": detail}
    return Response(msgspec.json.encode(body), status, headers, PROBLEM)


def rpc_error(refused: Refused) -> Response:
    """The same for clients of agents, which show only JSON-RPC errors."""
    error = {"code": _SERVER_ERROR_CODE, "message": refused.detail, "data": {"status": refused.status}}
    body = {"jsonrpc": "2.0", "id": None, "error": error}
    return Response(msgspec.json.encode(body), refused.status, refused.headers, "application/json")


def same_page_again(visit: Visit, *, style: str = "") -> Response:
    """Make the browser repeat the request from one of our pages: then it sends its session cookie.

    A link in a chat or mail comes from another site, so the browser omits a SameSite=Strict cookie.
    """
    where = escape(visit.url)
    head = f'{_link_to(visit, style)}<meta http-equiv="refresh" content="0;url={where}">'
    page = _PAGE.format(
        title="One moment", detail="The page opens.", head=head, links=f'<p><a href="{where}">Open it</a></p>'
    )
    return Response(page, 200, media_type="text/html")


def _link_to(visit: Visit, style: str) -> str:
    return f'<link rel="stylesheet" href="{escape(visit.at(style))}">' if style else ""

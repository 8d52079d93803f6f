"""An HTTP API that answers errors the same way everywhere.

Every error is a problem document (RFC 9457) whose `detail` names the field, the value and what to do. Errors of perdure
become 400, 404, 409 and 503; an unexpected error becomes a 500 without details and is logged.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Collection, Sequence
from contextlib import suppress
from http import HTTPStatus
from typing import Any, Final, TypeVar

import apsw
import msgspec
import psycopg
import structlog
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Match, Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp

from perdure import ArgumentError, ConflictError, NotFoundError, PayloadError, SettingsError, StoreUnavailable
from perdure_systems.kit.guards import KnownHost, SameOrigin, SecurityHeaders
from perdure_systems.kit.pages import DESK, STATIC
from perdure_systems.kit.problems import Problem, problem_response

__all__ = ["JsonResponse", "PageRequest", "Problem", "api", "read_body", "read_number", "read_page"]
T = TypeVar("T")
BODY_LIMIT_BYTES: Final = 1_000_000
_DEFAULT_PAGE_SIZE: Final = 50
_PAGE_SIZE_LIMIT: Final = 500
_ROWS_REACHED_LIMIT: Final = 10_000
_ECHO_LIMIT_CHARACTERS: Final = 80
_WHOLE: Final = re.compile(r"-?[0-9]{1,18}")
_STEPS: Final = re.compile(r"[^.\[\]]+")

log = structlog.get_logger("perdure_systems")


class JsonResponse(Response):
    """JSON from structs, dictionaries and lists."""

    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        """Encode, with times as ISO 8601 text."""
        return msgspec.json.encode(content)


class PageRequest(msgspec.Struct, frozen=True):
    """Which page of a list was asked for."""

    number: int
    size: int


def api(
    routes: Sequence[BaseRoute], *, hosts: Collection[str] = (), desk: ASGIApp | None = None, debug: bool = False
) -> Starlette:
    """An application with these routes, the shared style sheet and script under `/static`, guards and error answers.

    `hosts` are the names under which it is reached, besides addresses and names of this machine. `desk` is served below
    `/desk`, where all pages link to.
    """
    handlers: dict[Any, Callable[[Request, Any], Awaitable[Response]]] = {
        Problem: _problem,
        HTTPException: _http_error,
        ArgumentError: _as_problem(HTTPStatus.BAD_REQUEST),
        PayloadError: _as_problem(HTTPStatus.BAD_REQUEST),
        SettingsError: _as_problem(HTTPStatus.BAD_REQUEST),
        NotFoundError: _as_problem(HTTPStatus.NOT_FOUND),
        ConflictError: _as_problem(HTTPStatus.CONFLICT),
        StoreUnavailable: _as_problem(HTTPStatus.SERVICE_UNAVAILABLE),
        psycopg.OperationalError: _away,
        apsw.BusyError: _away,
        Exception: _unforeseen,
    }
    mounted: list[BaseRoute] = [Mount("/static", StaticFiles(directory=STATIC))]
    if desk is not None:
        mounted.append(Mount(DESK, desk))
    return Starlette(
        debug=debug,
        routes=[*routes, *mounted],
        middleware=[Middleware(SecurityHeaders), Middleware(KnownHost, hosts=hosts), Middleware(SameOrigin)],
        exception_handlers=handlers,
    )


async def read_body(request: Request, as_type: type[T]) -> T:
    """The JSON body as a value of this type; anything else is a 400 that names the field."""
    body = await _read_bytes(request)
    try:
        return msgspec.json.decode(body or b"{}", type=as_type)
    except msgspec.ValidationError as error:
        field = _field_of(str(error))
        detail = str(error).replace("`$.", "`") + _got(body, field)
        raise Problem(HTTPStatus.BAD_REQUEST, detail, field=field) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Problem(HTTPStatus.BAD_REQUEST, f"body must be JSON: {error}", field="body") from None


async def _read_bytes(request: Request) -> bytes:
    """The body. One that is too large is read to its end, so that its sender hears the answer, and not kept."""
    body, size = bytearray(), 0
    try:
        async for piece in request.stream():
            size += len(piece)
            if size <= BODY_LIMIT_BYTES:
                body += piece
    except ClientDisconnect:
        raise Problem(HTTPStatus.BAD_REQUEST, "body ended too early", field="body") from None
    if size > BODY_LIMIT_BYTES:
        detail = f"body must be at most {BODY_LIMIT_BYTES:,} bytes, got {size:,}"
        raise Problem(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, detail)
    return bytes(body)


def read_page(request: Request, *, size: int = _DEFAULT_PAGE_SIZE, largest: int = _PAGE_SIZE_LIMIT) -> PageRequest:
    """`page` (from 1) and `per_page` of the query. Pages by number go as far as perdure's do: 10,000 rows."""
    rows = read_number(request, "per_page", size, at_least=1, at_most=largest)
    return PageRequest(read_number(request, "page", 1, at_least=1, at_most=_ROWS_REACHED_LIMIT // rows), rows)


def read_number(request: Request, name: str, default: int, *, at_least: int, at_most: int) -> int:
    """A whole number of the query within bounds; a 400 names the field and the bounds."""
    value = request.query_params.get(name)
    if value is None or value == "":
        return default
    if not _WHOLE.fullmatch(value) or not at_least <= int(value) <= at_most:
        detail = f"{name} must be a whole number from {at_least} to {at_most}, got {value[:50]!r}"
        raise Problem(HTTPStatus.BAD_REQUEST, detail, field=name)
    return int(value)


async def _problem(request: Request, error: Problem) -> Response:
    return problem_response(request.scope, error.status, error.detail, field=error.field)


async def _http_error(request: Request, error: HTTPException) -> Response:
    detail, headers = error.detail, dict(error.headers or {})
    if error.status_code == HTTPStatus.NOT_FOUND:
        detail = f"there is nothing at {request.scope['path']}"
    elif error.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
        headers["Allow"] = _allowed(request)
        detail = f"{request.method} is not allowed here; allowed: {headers['Allow']}"
    response = problem_response(request.scope, error.status_code, detail)
    response.headers.update(headers)
    return response


def _allowed(request: Request) -> str:
    """The methods of all routes that have the path of a request: there may be one route for each."""
    methods: set[str] = set()
    for route in request.app.routes:
        if isinstance(route, Route) and route.matches(request.scope)[0] is not Match.NONE:
            methods |= route.methods or set()
    return ", ".join(sorted(methods))


def _as_problem(status: HTTPStatus) -> Callable[[Request, Any], Awaitable[Response]]:
    async def answer(request: Request, error: Exception) -> Response:
        field = getattr(error, "field", None)
        return problem_response(request.scope, status, str(error), field=field if isinstance(field, str) else None)

    return answer


async def _away(request: Request, error: Exception) -> Response:
    log.warning("database cannot be used", path=request.scope["path"], error=f"{type(error).__name__}: {error}")
    detail = "the database cannot be used now: check in a moment whether the change was made, and try again"
    return problem_response(request.scope, HTTPStatus.SERVICE_UNAVAILABLE, detail)


async def _unforeseen(request: Request, error: Exception) -> Response:
    log.error("request failed", path=request.scope["path"], method=request.method, exc_info=error)
    detail = "the request failed; the server's log has the reason"
    return problem_response(request.scope, HTTPStatus.INTERNAL_SERVER_ERROR, detail)


def _field_of(message: str) -> str | None:
    """The field that a message of msgspec names: at `$.updates[0].rollout`, or an object's missing field."""
    if "`$." in message:
        return message.rpartition("`$.")[2].rstrip("`")
    return message.partition("field `")[2].partition("`")[0] or None


def _got(body: bytes, field: str | None) -> str:
    """The value that a field of the body has, as the end of a message; nothing if it is missing or not plain."""
    found: Any = None
    with suppress(msgspec.DecodeError, UnicodeDecodeError, RecursionError):  # what comes behind the field may be broken
        found = msgspec.json.decode(body or b"{}")
    for name in _STEPS.findall(field or ""):
        if isinstance(found, list) and name.isdigit() and int(name) < len(found):
            found = found[int(name)]
        else:
            found = found.get(name) if isinstance(found, dict) else None
    if found is None or isinstance(found, dict | list):
        return ""
    return f", got {msgspec.json.encode(found).decode()[:_ECHO_LIMIT_CHARACTERS]}"

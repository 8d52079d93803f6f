"""An HTTP API that answers errors the same way everywhere.

Every error is a problem document (RFC 9457) whose `detail` names the field, the value and what to do. Errors of perdure
become 400, 404, 409 and 503; what nobody foresaw becomes a 500 that gives nothing away and is logged.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Sequence
from http import HTTPStatus
from typing import Any, Final, TypeVar

import msgspec
import structlog
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Mount
from starlette.staticfiles import StaticFiles

from perdure import ArgumentError, ConflictError, NotFoundError, PayloadError, SettingsError, StoreUnavailable
from perdure_systems.kit.guards import SameOrigin, SecurityHeaders
from perdure_systems.kit.pages import STATIC

T = TypeVar("T")
MOST_BYTES: Final = 1_000_000
_DEFAULT_PAGE_SIZE: Final = 50
_LARGEST_PAGE_SIZE: Final = 500
_LONGEST_ECHO: Final = 80
_STEPS: Final = re.compile(r"[^.\[\]]+")

log = structlog.get_logger("perdure_systems")


class Problem(Exception):  # noqa: N818 - the word of RFC 9457
    """An answer other than 2xx: `raise Problem(404, "there is no flag 'dark-mode'")`."""

    def __init__(self, status: int, detail: str, *, field: str | None = None) -> None:
        super().__init__(detail)
        self.status, self.detail, self.field = status, detail, field


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


def api(routes: Sequence[BaseRoute], *, debug: bool = False) -> Starlette:
    """An application with these routes, the shared style sheet and script under `/static`, guards and error answers."""
    handlers: dict[Any, Callable[[Request, Any], Awaitable[Response]]] = {
        Problem: _problem,
        HTTPException: _http_error,
        ArgumentError: _as_problem(HTTPStatus.BAD_REQUEST),
        PayloadError: _as_problem(HTTPStatus.BAD_REQUEST),
        SettingsError: _as_problem(HTTPStatus.BAD_REQUEST),
        NotFoundError: _as_problem(HTTPStatus.NOT_FOUND),
        ConflictError: _as_problem(HTTPStatus.CONFLICT),
        StoreUnavailable: _as_problem(HTTPStatus.SERVICE_UNAVAILABLE),
        Exception: _unforeseen,
    }
    static = Mount("/static", StaticFiles(directory=STATIC))
    return Starlette(
        debug=debug,
        routes=[*routes, static],
        middleware=[Middleware(SecurityHeaders), Middleware(SameOrigin)],
        exception_handlers=handlers,
    )


async def read_body(request: Request, as_type: type[T]) -> T:
    """The JSON body as a value of this type; anything else is a 400 that names the field."""
    body = await request.body()
    if len(body) > MOST_BYTES:
        raise Problem(
            HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"body must be at most {MOST_BYTES:,} bytes, got {len(body):,}"
        )
    try:
        return msgspec.json.decode(body or b"{}", type=as_type)
    except msgspec.ValidationError as error:
        field = _field_of(str(error))
        detail = str(error).replace("`$.", "`") + _got(body, field)
        raise Problem(HTTPStatus.BAD_REQUEST, detail, field=field) from None
    except msgspec.DecodeError as error:
        raise Problem(HTTPStatus.BAD_REQUEST, f"body must be JSON: {error}", field="body") from None


def read_page(request: Request, *, size: int = _DEFAULT_PAGE_SIZE, largest: int = _LARGEST_PAGE_SIZE) -> PageRequest:
    """`page` (from 1) and `per_page` of the query."""
    return PageRequest(
        read_number(request, "page", 1, at_least=1, at_most=1_000_000),
        read_number(request, "per_page", size, at_least=1, at_most=largest),
    )


def read_number(request: Request, name: str, default: int, *, at_least: int, at_most: int) -> int:
    """A whole number of the query within bounds; a 400 names the field and the bounds."""
    value = request.query_params.get(name)
    if value is None or value == "":
        return default
    if not (value.isascii() and value.lstrip("-").isdigit()) or not at_least <= int(value) <= at_most:
        detail = f"{name} must be a whole number from {at_least} to {at_most}, got {value[:50]!r}"
        raise Problem(HTTPStatus.BAD_REQUEST, detail, field=name)
    return int(value)


def problem_response(status: int, detail: str, *, field: str | None = None) -> Response:
    """A problem document."""
    content: dict[str, Any] = {"title": HTTPStatus(status).phrase, "status": int(status), "detail": detail}
    if field is not None:
        content["field"] = field
    headers = {"WWW-Authenticate": "Bearer"} if status == HTTPStatus.UNAUTHORIZED else None
    return Response(msgspec.json.encode(content), status, headers, media_type="application/problem+json")


async def _problem(_: Request, error: Problem) -> Response:
    return problem_response(error.status, error.detail, field=error.field)


async def _http_error(request: Request, error: HTTPException) -> Response:
    detail = error.detail
    if error.status_code == HTTPStatus.NOT_FOUND:
        detail = f"there is nothing at {request.url.path}"
    elif error.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
        detail = f"{request.method} is not allowed here; allowed: {(error.headers or {}).get('Allow', 'other methods')}"
    response = problem_response(error.status_code, detail)
    response.headers.update(error.headers or {})
    return response


def _as_problem(status: HTTPStatus) -> Callable[[Request, Any], Awaitable[Response]]:
    async def answer(_: Request, error: Exception) -> Response:
        field = getattr(error, "field", None)
        return problem_response(status, str(error), field=field if isinstance(field, str) else None)

    return answer


async def _unforeseen(request: Request, error: Exception) -> Response:
    log.error("request failed", path=request.url.path, method=request.method, exc_info=error)
    return problem_response(HTTPStatus.INTERNAL_SERVER_ERROR, "the request failed; the server's log has the reason")


def _field_of(message: str) -> str | None:
    """The field that a message of msgspec names: at `$.updates[0].rollout`, or an object's missing field."""
    if "`$." in message:
        return message.rpartition("`$.")[2].rstrip("`")
    return message.partition("field `")[2].partition("`")[0] or None


def _got(body: bytes, field: str | None) -> str:
    """The value that a field of the body has, as the end of a message; nothing if it is missing or not plain."""
    found: Any = msgspec.json.decode(body or b"{}")
    for name in _STEPS.findall(field or ""):
        if isinstance(found, list) and name.isdigit() and int(name) < len(found):
            found = found[int(name)]
        else:
            found = found.get(name) if isinstance(found, dict) else None
    if found is None or isinstance(found, dict | list):
        return ""
    return f", got {msgspec.json.encode(found).decode()[:_LONGEST_ECHO]}"

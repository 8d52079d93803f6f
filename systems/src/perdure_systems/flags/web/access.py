"""Who may do what: bearer tokens for programs, the same tokens in a cookie for people who use the page.

401: the caller is unknown. 403: the caller may not do this. Admins do everything; readers evaluate flags.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import wraps
from http import HTTPStatus
from typing import Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from perdure_systems.flags.settings import read_settings
from perdure_systems.kit.guards import bearer_of
from perdure_systems.kit.web import Problem

COOKIE: Final = "flags_token"
Handler = Callable[[Request], Awaitable[Response]]


class Caller(msgspec.Struct, frozen=True):
    """Who sends a request."""

    name: str
    is_admin: bool


def caller_of(request: Request) -> Caller | None:
    """The caller of a request, by its bearer token or its cookie; None: unknown."""
    if "authorization" not in request.headers and (token := request.cookies.get(COOKIE)):
        return caller_with(token)
    return _caller(request)


def caller_with(token: str) -> Caller | None:
    """Who has this token; compared as a bearer token is."""
    return _caller(Request({"type": "http", "headers": [(b"authorization", b"Bearer " + token.encode())]}))


def _caller(request: Request) -> Caller | None:
    """The role goes with the token, not with the name: one person may have a token for each."""
    settings = read_settings()
    admin, reader = bearer_of(request, settings.admins), bearer_of(request, settings.readers)
    if admin is not None:
        return Caller(admin, is_admin=True)
    return None if reader is None else Caller(reader, is_admin=False)


def by_admin(handler: Handler) -> Handler:
    """Let only admins through."""

    @wraps(handler)
    async def guarded(request: Request) -> Response:
        request.state.caller = caller = _known(request)
        if not caller.is_admin:
            detail = f"{caller.name} may evaluate flags, and not administer them"
            raise Problem(HTTPStatus.FORBIDDEN, detail)
        return await handler(request)

    return guarded


def by_anybody_known(handler: Handler) -> Handler:
    """Admit every caller with a token."""

    @wraps(handler)
    async def guarded(request: Request) -> Response:
        request.state.caller = _known(request)
        return await handler(request)

    return guarded


def admin_name(request: Request) -> str:
    """The name of the admin who sends a request that was let through."""
    caller: Caller = request.state.caller
    return caller.name


def _known(request: Request) -> Caller:
    caller = caller_of(request)
    if caller is None:
        detail = "a bearer token is needed: FLAG_ADMIN_TOKENS and FLAG_READER_TOKENS list those that are valid"
        raise Problem(HTTPStatus.UNAUTHORIZED, detail)
    return caller

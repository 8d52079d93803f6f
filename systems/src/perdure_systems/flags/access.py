"""Who may do what: bearer tokens for programs, the same tokens in a cookie for people who use the page.

401: nobody we know. 403: somebody who may not do this. Admins do everything; readers evaluate flags.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import wraps
from http import HTTPStatus
from typing import Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from perdure_systems.flags.settings import Settings, read_settings
from perdure_systems.kit.guards import bearer_of
from perdure_systems.kit.web import Problem

COOKIE: Final = "flags_token"
Handler = Callable[[Request], Awaitable[Response]]


class Caller(msgspec.Struct, frozen=True):
    """Who sends a request."""

    name: str
    is_admin: bool


def caller_of(request: Request) -> Caller | None:
    """Who sends a request, by its bearer token or its cookie; None: nobody we know."""
    settings = read_settings()
    if "authorization" in request.headers:
        name = bearer_of(request, {**settings.readers, **settings.admins})
    elif token := request.cookies.get(COOKIE):
        name = name_of(token, settings)
    else:
        return None
    return None if name is None else Caller(name, is_admin=name in settings.admins.values())


def name_of(token: str, settings: Settings) -> str | None:
    """The name behind a token; compared as a bearer token is."""
    scope = {"type": "http", "headers": [(b"authorization", b"Bearer " + token.encode())]}
    return bearer_of(Request(scope), {**settings.readers, **settings.admins})


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
    """Let everybody with a token through."""

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

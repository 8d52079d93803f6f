"""Checks before every request: its origin, its sender, and what a browser may do with the response."""

from __future__ import annotations

import hmac
import re
from collections.abc import Collection, Mapping
from http import HTTPStatus
from ipaddress import ip_address
from typing import Final
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from perdure_systems.kit.problems import problem_response

_SAFE_METHODS: Final = {"GET", "HEAD", "OPTIONS"}
_PLAIN_NAME: Final = re.compile(r"[a-z0-9_-]+")
_NO_SITES: Final = (".localhost", ".test")
_OWN_SITES: Final = {"same-origin", "none"}
_HEADERS: Final = {
    "Content-Security-Policy": "default-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cache-Control": "no-store",
}


class SecurityHeaders:
    """Add the headers that keep a page to itself: a strict content security policy, no sniffing, no caching."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, and add the headers to its answer."""

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        await self._app(scope, receive, send_with_headers)


class KnownHost:
    """Refuse requests for names of others (DNS rebinding): another site's name may lead a browser to this machine.

    Addresses are known, and names that no site can have: those without a dot, `localhost` and `test`.
    """

    def __init__(self, app: ASGIApp, hosts: Collection[str] = ()) -> None:
        self._app = app
        self._hosts = frozenset(host.lower() for host in hosts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, unless it is for a name that is not known."""
        if scope["type"] == "http":
            name = _name_of(Headers(scope=scope).get("host", ""))
            if not (_is_own(name) or name in self._hosts):
                detail = f"host {name[:100]!r} is not known here: start the system with --allow-host to serve it"
                await problem_response(scope, HTTPStatus.MISDIRECTED_REQUEST, detail)(scope, receive, send)
                return
        await self._app(scope, receive, send)


class SameOrigin:
    """Refuse requests that another site makes a browser send (CSRF). Programs send neither header and pass."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, unless it would change something and comes from another site."""
        if scope["type"] == "http" and scope["method"] not in _SAFE_METHODS and _is_foreign(Headers(scope=scope)):
            detail = "this request comes from another site and was refused"
            await problem_response(scope, HTTPStatus.FORBIDDEN, detail)(scope, receive, send)
            return
        await self._app(scope, receive, send)


def _is_foreign(headers: Headers) -> bool:
    site, origin = headers.get("sec-fetch-site"), headers.get("origin")
    if site is not None:
        return site not in _OWN_SITES
    return origin is not None and urlsplit(origin).netloc != headers.get("host")


def _name_of(host: str) -> str:
    """The name of a Host header, without its port."""
    return (host[1:].partition("]")[0] if host.startswith("[") else host.partition(":")[0]).lower().rstrip(".")


def _is_own(name: str) -> bool:
    if not name or name.endswith(_NO_SITES):
        return True
    try:
        ip_address(name)
    except ValueError:
        return _PLAIN_NAME.fullmatch(name) is not None
    return True


def bearer_of(request: Request, tokens: Mapping[str, str]) -> str | None:
    """The name behind the bearer token of a request, None if it has none or a wrong one.

    `tokens` are names by their tokens. All of them are compared, in constant time.
    """
    scheme, _, given = request.headers.get("authorization", "").partition(" ")
    found = None
    for token, name in tokens.items():
        if hmac.compare_digest(token.encode(), given.strip().encode()) and scheme.lower() == "bearer":
            found = name
    return found

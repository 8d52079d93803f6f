"""The checks of a request to the desk and the API, in order.

1. Host: one of our names (421). 2. Other sites: Sec-Fetch-Site and Origin (403). 3. No token in the URL (400).
4. Size of the body (413). 5. Who calls: bearer token, session, or this machine (401, or the login page).
6. Unsafe methods of callers without a bearer token: the CSRF value (403). Then the application, which finds the caller
in `scope["perdure.caller"]` and asks it for the scope that a route needs. Health probes skip 1; they, static files and
the login page skip 5.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, Final

from starlette.responses import Response

from perdure.errors import StoreError
from perdure.surfaces.access.access import Access
from perdure.surfaces.access.answers import Refused, refusal, same_page_again, to_login
from perdure.surfaces.access.caller import put_caller
from perdure.surfaces.access.login.csrf import Message, Receive, require_csrf
from perdure.surfaces.access.requests.bodies import limited
from perdure.surfaces.access.requests.headers import Send, with_security_headers
from perdure.surfaces.access.requests.origins import (
    is_followed_link,
    refuse_other_hosts,
    refuse_other_sites,
    refuse_secret_in_url,
)
from perdure.surfaces.access.requests.visit import Visit, read_visit

Scope = MutableMapping[str, Any]
AsgiApp = Callable[[Scope, Receive, Send], Awaitable[None]]

PROBES: Final = frozenset({"/healthz", "/readyz"})
_STATIC: Final = "/static/"
_LOGIN: Final = "/login"
_LOGOUT: Final = "/logout"
_POLICY_VIOLATION_CODE: Final = 1008
_SHOW_ONE: Final = "This needs a token: send Authorization: Bearer pdr_…; create a token with `perdure token create`."


class AccessMiddleware:
    """Passes requests on to `app` with their caller, or answers them itself."""

    def __init__(self, app: AsgiApp, access: Access) -> None:
        self._app = app
        self._access = access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one connection."""
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": _POLICY_VIOLATION_CODE})
            return
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        visit = read_visit(scope, self._access.settings)
        guarded = _Answering(with_security_headers(send))
        try:
            answer = await self._handle(visit, scope, receive, guarded)
        except Refused as refused:
            answer = refusal(visit, refused, style=self._access.style)
        except StoreError as error:
            answer = refusal(visit, _away(visit, error), style=self._access.style)
        if answer is not None and not guarded.has_begun:
            await answer(scope, receive, guarded)

    async def _handle(self, visit: Visit, scope: Scope, receive: Receive, send: Send) -> Response | None:
        settings = self._access.settings
        if visit.path not in PROBES:
            refuse_other_hosts(visit, settings)
        if is_followed_link(visit):
            return same_page_again(visit, style=self._access.style)
        refuse_other_sites(visit)
        refuse_secret_in_url(visit)
        receive = limited(visit, receive, settings.largest_body)
        if visit.path == _LOGIN:
            return await self._log_in(visit, receive)
        if visit.path in PROBES or visit.path.startswith(_STATIC):
            put_caller(scope, None)
            await self._app(scope, receive, send)
            return None
        return await self._let_in(visit, scope, receive, send)

    async def _let_in(self, visit: Visit, scope: Scope, receive: Receive, send: Send) -> Response | None:
        caller = await self._access.caller(visit)
        if caller is None:
            if visit.is_of_program:
                raise Refused(401, "Unauthorized", _SHOW_ONE, {"WWW-Authenticate": 'Bearer realm="perdure"'})
            return to_login(visit, style=self._access.style)
        if caller.csrf is not None and not visit.is_safe:
            receive = await require_csrf(visit, receive, caller.csrf)
        if visit.path == _LOGOUT:
            return await self._log_out(visit)
        put_caller(scope, caller)
        await self._app(scope, receive, send)
        return None

    async def _log_in(self, visit: Visit, receive: Receive) -> Response:
        key = await self._access.key()
        if visit.method in {"GET", "HEAD"}:
            return self._access.login.show(visit, key)
        if visit.method != "POST":
            raise Refused(405, "Method Not Allowed", "The login page takes GET and POST.", {"Allow": "GET, HEAD, POST"})
        return await self._access.login.log_in(visit, await self._access.store(), key, receive)

    async def _log_out(self, visit: Visit) -> Response:
        if visit.method != "POST":
            raise Refused(405, "Method Not Allowed", "Logging out takes POST.", {"Allow": "POST"})
        return await self._access.login.log_out(visit, await self._access.store())


class _Answering:
    """A `send` that knows whether the answer has begun: then it cannot be replaced."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self.has_begun = False

    async def __call__(self, message: Message) -> None:
        self.has_begun = True
        await self._send(message)


def _away(visit: Visit, error: StoreError) -> Refused:
    """The response during an outage. Only this machine gets the error's text: the caller is not authenticated yet."""
    headers = {"Retry-After": "5", "Perdure-Away": "database"}
    detail = str(error) if visit.is_local else "The desk cannot use its database."
    if visit.is_of_program or not visit.wants_page:
        return Refused(503, "Service Unavailable", detail, headers)
    return Refused(503, "No answer from the database", detail, headers)

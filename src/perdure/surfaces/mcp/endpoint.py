"""The server for agents over HTTP, as a part of the desk.

The access layer checks host, origin and token before a request arrives here, and each tool checks the caller's scope. A
session belongs to the caller who opened it: with another token it is not found.
"""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Final

from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.datastructures import Headers
from starlette.types import Message, Receive, Scope, Send

from perdure.surfaces.access.caller import caller_of
from perdure.surfaces.mcp.ground import Ground
from perdure.surfaces.mcp.server import make_server
from perdure.surfaces.mcp.sessions import CallersSessions

SESSIONS_LIMIT: Final = 200
SESSIONS_PER_CALLER: Final = 20
_IDLE_SESSION_TIMEOUT: Final = timedelta(minutes=30)
_SESSION: Final = "mcp-session-id"


class McpEndpoint:
    """Serves agents between `open` and `close`."""

    def __init__(self, ground: Ground) -> None:
        self._server = make_server(ground)  # slow, so not during a request
        self._sessions: StreamableHTTPSessionManager | None = None
        self._callers = CallersSessions(SESSIONS_PER_CALLER)
        self._holding: asyncio.Task[None] | None = None
        self._is_open = asyncio.Event()
        self._stop = asyncio.Event()

    async def open(self) -> None:
        """Begin to serve. The session manager runs in its own task, which `close` ends."""
        if self._holding is None:
            self._stop, self._is_open = asyncio.Event(), asyncio.Event()
            self._holding = asyncio.create_task(self._hold(), name="perdure mcp")
        await self._is_open.wait()

    async def close(self) -> None:
        """End all sessions and their streams."""
        if self._holding is not None:
            for caller, session in self._callers.take_all():
                await self._end(caller, session)
            self._stop.set()
            await asyncio.wait({self._holding})
            self._holding = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request that the access layer let through."""
        await self.open()
        if self._sessions is None:
            raise RuntimeError("the server for agents has ended")
        caller = caller_of(scope)

        async def noting(message: Message) -> None:
            is_served = message["type"] == "http.response.start" and message["status"] < 400  # noqa: PLR2004 - no error
            if is_served and (session := Headers(raw=message["headers"]).get(_SESSION)):
                self._callers.used(caller.name, session)
            await send(message)

        await self._sessions.handle_request({**scope, "user": _user(caller.name)}, receive, noting)
        for session in self._callers.take_surplus(caller.name):
            await self._end(caller.name, session)

    async def _end(self, caller: str, session: str) -> None:
        """End a session and its streams with a DELETE request, as a client would."""
        if self._sessions is None:
            return
        request = {
            "type": "http",
            "method": "DELETE",
            "path": "/mcp",
            "query_string": b"",
            "headers": [(_SESSION.encode(), session.encode())],
            "user": _user(caller),
        }
        await self._sessions.handle_request(request, _nothing, _ignored)

    async def _hold(self) -> None:
        self._server.streamable_http_app(  # makes a session manager, which can run only once
            session_idle_timeout=_IDLE_SESSION_TIMEOUT.total_seconds(),
            max_sessions=SESSIONS_LIMIT,
            transport_security=None,
            host="",
        )
        self._sessions = self._server.session_manager
        try:
            async with self._sessions.run():
                self._is_open.set()
                await self._stop.wait()
        finally:
            self._sessions = None
            self._is_open.set()


def _user(caller: str) -> AuthenticatedUser:
    """The owner of sessions for the SDK, which compares only names; each tool checks the scope."""
    return AuthenticatedUser(AccessToken(token="", client_id=caller, scopes=[]))


async def _nothing() -> Message:
    return {"type": "http.request", "body": b"", "more_body": False}


async def _ignored(_: Message) -> None:
    """Ignore the response to our own request."""

"""The server for agents over HTTP, as a part of the desk.

The access layer has checked host, origin and token before a request comes here, and each tool asks the caller for its
scope. A session belongs to the caller who opened it: with another token it is not found.
"""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Final

from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.types import Receive, Scope, Send

from perdure.surfaces.access.caller import caller_of
from perdure.surfaces.mcp.ground import Ground
from perdure.surfaces.mcp.server import make_server

_MOST_SESSIONS: Final = 100
_IDLE: Final = timedelta(minutes=30)


class McpEndpoint:
    """Serves agents between `open` and `close`."""

    def __init__(self, ground: Ground) -> None:
        self._server = make_server(ground)  # takes a while: not in a request
        self._sessions: StreamableHTTPSessionManager | None = None
        self._holding: asyncio.Task[None] | None = None
        self._is_open = asyncio.Event()
        self._stop = asyncio.Event()

    async def open(self) -> None:
        """Begin to serve. What runs for sessions lives in a task of its own, which `close` ends."""
        if self._holding is None:
            self._stop, self._is_open = asyncio.Event(), asyncio.Event()
            self._holding = asyncio.create_task(self._hold(), name="perdure mcp")
        await self._is_open.wait()

    async def close(self) -> None:
        """End all sessions and their streams."""
        if self._holding is not None:
            self._stop.set()
            await asyncio.wait({self._holding})
            self._holding = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request that the access layer let through."""
        await self.open()
        if self._sessions is None:
            raise RuntimeError("the server for agents has ended")
        caller = caller_of(scope)
        owner = AccessToken(token="", client_id=caller.name, scopes=[caller.scope])
        await self._sessions.handle_request({**scope, "user": AuthenticatedUser(owner)}, receive, send)

    async def _hold(self) -> None:
        self._server.streamable_http_app(  # makes a manager of sessions, which serves once
            session_idle_timeout=_IDLE.total_seconds(), max_sessions=_MOST_SESSIONS, transport_security=None, host=""
        )
        self._sessions = self._server.session_manager
        try:
            async with self._sessions.run():
                self._is_open.set()
                await self._stop.wait()
        finally:
            self._sessions = None
            self._is_open.set()

"""The web desk as a site of its own, on an open store, with the headers that a deployed one sends."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

import uvicorn
from starlette.applications import Starlette
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from perdure.app.app import App
from perdure.domain.operate.access import Scope as AccessScope
from perdure.operate.desk import Desk
from perdure.storage.port import Store
from perdure.surfaces.access.caller import Caller, put_caller
from perdure.surfaces.desk import About, web_desk

ADMIN: Final = Caller(name="ada", scope=AccessScope.ADMIN, source="desk 127.0.0.1")
STRICT: Final = "default-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'"


class Checked:
    """Puts the caller into the scope and the content security policy onto every answer."""

    def __init__(self, app: ASGIApp, caller: Caller) -> None:
        self.app = app
        self.caller = caller

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on."""

        async def with_policy(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], (b"content-security-policy", STRICT.encode())]
            await send(message)

        put_caller(scope, self.caller)
        await self.app(scope, receive, with_policy)


def desk_site(
    store: Store,
    *,
    caller: Caller = ADMIN,
    read_only: bool = False,
    live: bool = False,
    app: App | None = None,
) -> ASGIApp:
    """The desk without a server; answers are not kept, so that a test sees what it did."""
    why = "it was started so" if read_only else None
    about = About(database="sqlite:///shop.db", version="0.0.0", engine="SQLite", why_read_only=lambda: why)
    routes = web_desk(desk_for=lambda _: Desk(store, "ada"), about=about, app=app, fresh_for=0, live=live)
    return Checked(Starlette(routes=routes), caller)


@asynccontextmanager
async def served(app: ASGIApp, port: int = 0) -> AsyncIterator[str]:
    """Serve an app on a port of the loopback, or on a free one, for the block; its address."""
    config = uvicorn.Config(app, host="127.0.0.1", port=port, log_level="warning", lifespan="off")
    server = uvicorn.Server(config)
    task = asyncio.create_task(server.serve())
    while not server.started:
        await asyncio.sleep(0.01)
    taken = server.servers[0].sockets[0].getsockname()[1]
    try:
        yield f"http://127.0.0.1:{taken}"
    finally:
        server.should_exit = True
        server.force_exit = True
        await task

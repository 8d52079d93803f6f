"""The ASGI application: API, pages, static files and health checks, behind the access layer.

It opens its database and starts its loops when the server's lifespan begins. Where no lifespan reaches it, as in an app
that mounts it, the first request does that. `async with site:` does the same explicitly.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Collection
from typing import TYPE_CHECKING, Any, Final, Self

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route
from starlette.types import Receive, Scope, Send

from perdure.app.app import App
from perdure.errors import StillRunning, StoreError
from perdure.lifecycle.loops.crew import Loops
from perdure.lifecycle.process.contention import IncidentLog
from perdure.operate.desk import Desk
from perdure.policy.secrets.passwords import without_password
from perdure.signals.metrics.settings import MetricsSettings
from perdure.storage.port import Store
from perdure.storage.time_limits import limited
from perdure.surfaces.access.access import Access
from perdure.surfaces.access.answers import Refused, problem, rpc_error
from perdure.surfaces.access.binding import settings_for
from perdure.surfaces.access.middleware import AccessMiddleware
from perdure.surfaces.access.requests.authority import is_loopback
from perdure.surfaces.access.settings import AccessSettings
from perdure.surfaces.api.encoding import encoded
from perdure.surfaces.api.openapi import openapi
from perdure.surfaces.api.router import ApiRouter
from perdure.surfaces.api.routes import ROUTES
from perdure.surfaces.desk import About, web_desk
from perdure.surfaces.desk.login import login_page, style_path
from perdure.surfaces.mcp.settings import McpSettings
from perdure.surfaces.server.agents import endpoint_for
from perdure.surfaces.server.backing import Backing
from perdure.surfaces.server.event_stream import EventReads
from perdure.surfaces.server.health import Health
from perdure.surfaces.server.health_settings import HealthSettings
from perdure.surfaces.server.live import LiveHub, TooManyStreams, stream
from perdure.surfaces.server.metrics_page import MetricsPage
from perdure.surfaces.server.outage import outage_page
from perdure.surfaces.server.place import SEGMENTS, checked_prefix, placed
from perdure.surfaces.server.requests import QUERY_TIME_LIMIT, SITE, access_of, desk_of
from perdure.surfaces.server.topics import TICK
from perdure.upkeep.bulk_runner import BulkRunner
from perdure.version import __version__

if TYPE_CHECKING:
    from perdure.worker.worker import Worker

_API: Final = ("api", "v1")
_STATIC: Final = "static"
_AGENTS: Final = frozenset({("mcp",), ("mcp", "")})
_LIVE: Final = "desk"  # the actor of the live hub
_CLOSE_TIMEOUT_SECONDS: Final = 1.0

_log = logging.getLogger("perdure.desk")

_NO_API: Final = problem(404, "Not Found", "The API is at /api/v1; /api/v1/openapi.json describes it.")
_NO_AGENTS: Final = rpc_error(
    Refused(404, "Not Found", "Agents are not served here: start the desk with `--mcp read` or `--mcp commands`.")
)


class Site:
    """API and desk of one database, as an ASGI application.

    `prefix` is the path below which it is served. With `read_only` nothing is ever written, so a standby is enough.
    `access` says who may use it: callers on this machine, and others with a token. `workers` are those of the same
    process; the collection is read at each request, so it may be filled later. `mcp` serves agents at /mcp.

    Its constructor takes eight values because it is the composition root: each is an option of a part that it makes.
    """

    def __init__(
        self,
        source: App | str,
        *,
        prefix: str = "",
        read_only: bool = False,
        access: AccessSettings | None = None,
        health: HealthSettings | None = None,
        metrics: MetricsSettings | None = None,
        workers: Collection[Worker] = (),
        mcp: McpSettings | None = None,
    ) -> None:
        self.prefix = checked_prefix(prefix)
        allowed = access or AccessSettings()
        self.backing = Backing(source, read_only=read_only or allowed.read_only)
        self.access = Access(
            self._quick_store,
            allowed,
            login_page=login_page(),
            style=style_path(),
            why_read_only=self.backing.why_read_only,
        )
        self.workers = workers
        self.health = Health(self.backing, health or HealthSettings())
        self._metrics = self._new_metrics(metrics or MetricsSettings())
        self.live = self._new_hub()
        self.event_reads = EventReads(self._live_desk)
        self.incidents = IncidentLog(self.backing.events)
        self.profiling = asyncio.Lock()
        self._loops: Loops | None = None
        self.bulk: BulkRunner | None = None
        self._guard = AccessMiddleware(self._serve, self.access)
        self._api = ApiRouter(ROUTES)
        self._openapi: dict[str, Any] | None = None
        self._agents = None if mcp is None else endpoint_for(self.backing, mcp)
        self._pages = Starlette(routes=[Route("/live", self._tick, methods=["GET"]), *self._web_desk()])

    async def open(self) -> None:
        """Open the database and start the loops; an unavailable database is logged, and tried again later."""
        if self._loops is not None:
            return
        self.live = self._new_hub()
        self._loops = Loops([self.live])
        try:
            await self.backing.store()
        except StoreError as error:
            _log.warning("the desk starts without its database: %s", error)
        self._loops.start()
        self._run_bulk()

    async def close(self) -> None:
        """End all streams, stop the loops, and close the database."""
        await self.end_streams()
        if self._loops is not None:
            try:
                await self._loops.wait_for_completion(_CLOSE_TIMEOUT_SECONDS)
            except StillRunning as error:
                _log.warning("the desk closes anyway: %s", error)
            self._loops = self.bulk = None
        await self.backing.close()

    async def end_streams(self) -> None:
        """End the streams of browsers and agents, so that no reader delays a shutdown."""
        self.live.close()
        if self._agents is not None:
            await self._agents.close()

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection."""
        if scope["type"] == "lifespan":
            await self._live_through(receive, send)
        elif scope["type"] == "http":
            await self.open()
            self._run_bulk()
            await self._guard({**scope, **placed(scope, self.prefix), SITE: self}, receive, send)
        else:
            await send({"type": "websocket.close"})

    def openapi(self) -> dict[str, Any]:
        """The OpenAPI document of the API, as it is served here."""
        if self._openapi is None:
            self._openapi = openapi(ROUTES)
        return self._openapi

    async def listen_on(self, host: str) -> None:
        """Set the address that the server listens on: any but loopback requires a token, and one must exist.

        Raises SettingsError if none exists, and StoreError if the database does not answer.
        """
        if not is_loopback(host) or self.access.settings.requires_token:
            self.access.settings = await settings_for(host, self.access.settings, await self.backing.store())

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request that the access layer let through."""
        segments = scope[SEGMENTS]
        if segments in {("healthz",), ("readyz",)}:
            await self.health(scope, receive, send)
        elif segments == ("metrics",):
            await self._metrics(scope, receive, send)
        elif segments[:2] == _API:
            await self._api(scope, receive, send)
        elif segments[:1] == _API[:1]:
            await _NO_API(scope, receive, send)
        elif segments in _AGENTS:
            await (self._agents or _NO_AGENTS)(scope, receive, send)
        else:
            await self._show(scope, receive, send)

    async def _show(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Show a page; the outage page until the database has been opened."""
        try:
            if scope[SEGMENTS][0] != _STATIC:
                await self.backing.store()
        except StoreError as error:
            await outage_page(str(error))(scope, receive, send)
        else:
            await self._pages(scope, receive, send)

    async def _tick(self, request: Request) -> Response:
        """The stream of a browser tab: it signals each change, and the page then fetches its new content."""
        try:
            return stream(self.live, [TICK], access_of(request))
        except TooManyStreams as error:
            return Response(str(error), 429, {"retry-after": "30"}, "text/plain")

    def _web_desk(self) -> list[BaseRoute]:
        about = About(
            database=without_password(self.backing.url),
            version=__version__,
            engine="SQLite" if self.backing.url.startswith("sqlite:") else "PostgreSQL",
            why_read_only=self.backing.why_read_only,
        )
        return web_desk(desk_for=desk_of, about=about, app=self.backing.app)

    async def _live_through(self, receive: Receive, send: Send) -> None:
        await receive()
        try:
            await self.open()
        except Exception as error:  # noqa: BLE001 - the server says so and ends
            await send({"type": "lifespan.startup.failed", "message": str(error)})
            return
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await self.close()
        await send({"type": "lifespan.shutdown.complete"})

    def _run_bulk(self) -> None:
        """Work on bulk commands once the database is open; a read-only site leaves them to other processes."""
        if self.bulk is None and self._loops is not None and self.backing.is_open and not self.backing.read_only:
            self.bulk = BulkRunner(self.backing.opened(), self.backing.events, f"desk {socket.gethostname()}")
            self._loops.add(self.bulk)

    def _new_metrics(self, settings: MetricsSettings) -> MetricsPage:
        return MetricsPage(self.backing, settings, workers=self.workers, loops=lambda: self._loops or ())

    def _new_hub(self) -> LiveHub:
        return LiveHub(self.backing.events, self._live_desk, encoded)

    async def _quick_store(self) -> Store:
        """The store for access checks: a hanging database delays a request no longer than a page's own queries."""
        return limited(await self.backing.store(), QUERY_TIME_LIMIT)

    async def _live_desk(self) -> Desk:
        return Desk(await self.backing.store(), _LIVE, _LIVE, time_limit=QUERY_TIME_LIMIT)

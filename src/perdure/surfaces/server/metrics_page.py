"""`/metrics` of the desk: this process and the cluster, for Prometheus.

The access layer has checked the caller already: on this machine, or with a token. Every scope includes reading.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import TYPE_CHECKING, Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from perdure.domain.operate.access import Scope as AccessScope
from perdure.errors import SettingsError
from perdure.lifecycle.loops.loop import Loop
from perdure.signals.metrics.extra import MISSING, missing_metrics
from perdure.signals.metrics.settings import MetricsSettings
from perdure.surfaces.access.answers import problem
from perdure.surfaces.access.caller import caller_of
from perdure.surfaces.server.backing import Backing

if TYPE_CHECKING:
    from perdure.signals.metrics.exporter import Exporter
    from perdure.worker.worker import Worker


class MetricsPage:
    """Counts from the start of the site; without the metrics extra its response names that extra.

    A desk without an app runs no jobs: it counts from the first request, and imports nothing for metrics before it.
    """

    def __init__(
        self,
        backing: Backing,
        settings: MetricsSettings,
        *,
        workers: Collection[Worker],
        loops: Callable[[], Iterable[Loop[Any]]],
    ) -> None:
        self._backing = backing
        self._settings = settings
        self._workers = workers
        self._loops = loops
        self._exporter = None if backing.app is None else self._new_exporter()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        caller_of(scope).require(AccessScope.READ)
        await (await self._answer(Request(scope, receive)))(scope, receive, send)

    async def _answer(self, request: Request) -> Response:
        if request.method not in {"GET", "HEAD"}:
            detail = f"{request.method} is not possible here, only GET, HEAD"
            return problem(405, "Method Not Allowed", detail, {"allow": "GET, HEAD"})
        self._exporter = self._exporter or self._new_exporter()
        if self._exporter is None:
            return Response(f"/metrics {MISSING}\n", 501, media_type="text/plain")
        found = await self._exporter.exposition(request.headers.get("accept"))
        headers = {"content-type": found.content_type, "cache-control": "no-store"}
        return Response(found.body, headers=headers)

    def _new_exporter(self) -> Exporter | None:
        try:
            from perdure.signals.metrics.making import make_exporter  # noqa: PLC0415 - an extra
        except ModuleNotFoundError as error:
            if not isinstance(missing_metrics(error), SettingsError):
                raise
            return None
        return make_exporter(
            self._backing.events,
            self._settings,
            app=self._backing.app,
            workers=self._workers,
            loops=self._loops,
            cluster=self._backing.store,
        )

"""`GET /metrics` of a system that adds metrics of its own to the engine's. For others there is `/desk/metrics`."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Final

from prometheus_client.registry import Collector
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response

from perdure import App, Worker
from perdure.metrics import exporter

METRICS: Final = "/metrics"


def count_metrics(served: Starlette, app: App, workers: Collection[Worker] = ()) -> None:
    """Count for `/metrics` from now on: what came before the first scrape would be missing otherwise."""
    served.state.metrics = exporter(app, workers=workers, cluster=True)


async def serve_metrics(request: Request, app: App, own: Iterable[Collector] = ()) -> Response:
    """The app's cluster, the workers of this process, and `own`; in OpenMetrics for those who ask for it."""
    state = request.app.state
    if not hasattr(state, "metrics"):
        count_metrics(request.app, app, getattr(state, "workers", ()))
    answer = await state.metrics.exposition(request.headers.get("accept"), own)
    return Response(answer.body, headers={"content-type": answer.content_type, "cache-control": "no-store"})

"""`GET /metrics` of a system: the engine's metrics, and what the system adds."""

from __future__ import annotations

from collections.abc import Iterable

from prometheus_client.registry import Collector
from starlette.requests import Request
from starlette.responses import Response

from perdure import App
from perdure.metrics import exporter


async def serve_metrics(request: Request, app: App, own: Iterable[Collector] = ()) -> Response:
    """The app's cluster, the workers of this process, and `own`; in OpenMetrics for those who ask for it."""
    state = request.app.state
    if not hasattr(state, "metrics"):
        state.metrics = exporter(app, workers=getattr(state, "workers", ()), cluster=True)
    answer = await state.metrics.exposition(request.headers.get("accept"), own)
    return Response(answer.body, headers={"content-type": answer.content_type, "cache-control": "no-store"})

"""The options of `perdure worker` for its metrics, and their server."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Annotated, Final

import structlog
import typer

from perdure.app.app import App
from perdure.lifecycle.process.supervisor import own_place
from perdure.signals.metrics.extra import missing_metrics
from perdure.surfaces.cli.workers.running import Beside

if TYPE_CHECKING:
    from perdure.worker.worker import Worker

_METRICS: Final = "Metrics"

MetricsPort = Annotated[
    int | None,
    typer.Option(
        "--metrics-port",
        help="Serve /metrics for Prometheus on this port; 0 picks a free one. With --processes, the next ports too.",
        show_default="no metrics",
        rich_help_panel=_METRICS,
    ),
]
MetricsHost = Annotated[str, typer.Option("--metrics-host", help="The address to listen on.", rich_help_panel=_METRICS)]
MetricsCluster = Annotated[
    bool,
    typer.Option(
        "--metrics-cluster",
        help="Export the cluster's metrics too. Set it on one worker, if the desk is not scraped.",
        rich_help_panel=_METRICS,
    ),
]


def metrics_beside(app: App, host: str, port: int | None, *, cluster: bool) -> Beside | None:
    """A server for the metrics of a worker while it runs; None: no port was given."""
    if port is None:
        return None
    try:
        from perdure.signals.metrics.endpoint import served_metrics  # noqa: PLC0415 - an extra
        from perdure.signals.metrics.making import exporter_of  # noqa: PLC0415 - as above
    except ModuleNotFoundError as error:
        raise missing_metrics(error) from None
    place = own_place()

    @asynccontextmanager
    async def serve(worker: Worker) -> AsyncIterator[None]:
        exporter = exporter_of(app, workers=[worker], cluster=cluster and place == 1)
        wanted = port + place - 1 if port else 0
        async with served_metrics(exporter, app.store, host, wanted) as found:
            shown = f"[{host}]" if ":" in host else host
            structlog.stdlib.get_logger("perdure").info("metrics served", address=f"http://{shown}:{found}/metrics")
            yield

    return serve

"""Metrics for Prometheus, for programs that serve them themselves. Needs the extra: `pip install 'perdure[metrics]'`.

`perdure desk`, `perdure up` and `perdure worker --metrics-port` serve `/metrics` without any of this.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from perdure.app.app import App
from perdure.signals.metrics.extra import missing_metrics
from perdure.signals.metrics.settings import MetricsSettings

if TYPE_CHECKING:
    from collections.abc import Collection

    from perdure.signals.metrics.exporter import Exporter
    from perdure.worker.worker import Worker

__all__ = ["MetricsSettings", "exporter"]


def exporter(
    app: App, *, workers: Collection[Worker] = (), cluster: bool = False, settings: MetricsSettings | None = None
) -> Exporter:
    """The metrics of an app in this process: `answer = await metrics.exposition(request.headers.get("accept"))`.

    The answer has `body` and `content_type`. It holds what this process has counted from now on: jobs that it stored,
    the attempts of `workers`, events. A list of workers may be filled later. With `cluster` it also holds what belongs
    to the whole cluster, read from the database: let one process export that, such as the desk. `close()` stops it.
    """
    try:
        from perdure.signals.metrics.making import exporter_of  # noqa: PLC0415 - prometheus_client is an extra
    except ModuleNotFoundError as error:
        raise missing_metrics(error) from None
    return exporter_of(app, workers=workers, cluster=cluster, settings=settings)

"""Puts an exporter together."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Any

from perdure.app.app import App
from perdure.errors import SettingsError
from perdure.events import Emitter
from perdure.kinds.kind import Registry
from perdure.lifecycle.loops.loop import Loop
from perdure.signals.metrics.exporter import ClusterMetrics, Exporter, Exposition, StoreSource
from perdure.signals.metrics.labels import Labels
from perdure.signals.metrics.process import ProcessMetrics
from perdure.signals.metrics.settings import MetricsSettings
from perdure.storage.port import Store
from perdure.worker.worker import Worker


def exporter_of(
    app: App, *, workers: Collection[Worker] = (), cluster: bool = False, settings: MetricsSettings | None = None
) -> Exporter:
    """What this process counts for an app, and with `cluster` what its database knows of all processes."""
    if not app.worker_settings.statistics and workers:
        raise SettingsError("worker.statistics", "is 0, so attempts are not counted: metrics need it, as in 5s")
    return make_exporter(
        app.events, settings or MetricsSettings(), app=app, workers=workers, cluster=app.store if cluster else None
    )


def make_exporter(
    events: Emitter,
    settings: MetricsSettings,
    *,
    app: App | None = None,
    workers: Collection[Worker] = (),
    loops: Callable[[], Iterable[Loop[Any]]] = tuple,
    cluster: StoreSource | None = None,
) -> Exporter:
    """An exporter of these events, workers and loops, and of the cluster in this store."""
    labels = Labels(settings)
    kinds: Registry | None = None if app is None else app.kinds
    if kinds is not None:
        labels.declare((kind.queue, kind.name) for kind in kinds.values())
    enqueued = None if app is None else app.enqueued
    return Exporter(
        ProcessMetrics(events, labels, enqueued=enqueued, workers=workers, loops=loops),
        None if cluster is None else ClusterMetrics(cluster, labels, settings, kinds=kinds),
    )


async def cluster_exposition(store: Store) -> Exposition:
    """What the database knows of the cluster, and nothing of this process; raises StoreError."""
    await store.check_schema()

    async def opened() -> Store:
        return store

    settings = MetricsSettings()
    return await Exporter(None, ClusterMetrics(opened, Labels(settings), settings)).exposition()

"""One answer to a scrape: what this process counts, and the cluster if it is exported here."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from datetime import timedelta
from typing import Final

from msgspec import Struct
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest
from prometheus_client.openmetrics import exposition as openmetrics
from prometheus_client.registry import Collector

from perdure.clock import Clock, SystemClock
from perdure.errors import StoreError
from perdure.kinds.kind import Registry
from perdure.signals.metrics import catalogue as c
from perdure.signals.metrics.cluster import QUERY_TIMEOUT, read_cluster
from perdure.signals.metrics.cluster_families import cluster_families
from perdure.signals.metrics.families import Family, Numbers, as_openmetrics, as_text
from perdure.signals.metrics.labels import Labels
from perdure.signals.metrics.process import ProcessMetrics
from perdure.signals.metrics.settings import MetricsSettings
from perdure.storage.port import Store

StoreSource = Callable[[], Awaitable[Store]]
_OPENMETRICS: Final = "application/openmetrics-text"
_READ_TIMEOUT_SECONDS: Final = (QUERY_TIMEOUT + timedelta(seconds=1)).total_seconds()  # a connection may take long, too
_REUSE_FACTOR: Final = 20
"""An answer is used again for this many times as long as its read took: so reads take at most 5 % of the time."""
_LONGEST_REUSE_SECONDS: Final = 10.0  # less than the usual interval of a scraper
_END: Final = b"# EOF\n"


class Exposition(Struct, frozen=True):
    """An answer in the format that was asked for."""

    body: bytes
    content_type: str


class ClusterMetrics:
    """Metrics of the cluster, cached for a while. An unreachable database becomes a metric, not an error.

    Several scrapers share one read. A read that takes long, as with 10,000 kinds, is used again for longer.
    """

    def __init__(
        self,
        store: StoreSource,
        labels: Labels,
        settings: MetricsSettings,
        *,
        kinds: Registry | None = None,
        clock: Clock | None = None,
    ) -> None:
        self._store = store
        self._labels = labels
        self._settings = settings
        self._kinds = kinds
        self._clock = clock or SystemClock()
        self._asking = asyncio.Lock()
        self._last: tuple[float, list[Family]] | None = None

    async def families(self) -> list[Family]:
        """All metrics of the cluster."""
        async with self._asking:
            now = self._clock.monotonic()
            if self._last is None or now >= self._last[0]:
                found, is_up = await self._read(now)
                # Its age counts from the end of the read: scrapes that waited for a slow database do not read it again.
                ended = self._clock.monotonic()
                self._last = ended + self._reuse(ended - now if is_up else 0.0), found
            return self._last[1]

    def _reuse(self, took: float) -> float:
        """For how long an answer is used again; a `fresh` of 0 means that each scrape reads."""
        fresh = self._settings.fresh.total_seconds()
        return fresh and max(fresh, min(_REUSE_FACTOR * took, _LONGEST_REUSE_SECONDS))

    async def _read(self, began: float) -> tuple[list[Family], bool]:
        """The metrics, and whether the database answered."""
        up, took = Numbers(c.UP), Numbers(c.READ)
        found: list[Family] = []
        try:
            async with asyncio.timeout(_READ_TIMEOUT_SECONDS):
                cluster = await read_cluster(await self._store(), self._settings, self._kinds)
        except (StoreError, TimeoutError):
            up.add(0)
        else:
            up.add(1)
            found = cluster_families(cluster, self._labels, self._settings)
        took.add(self._clock.monotonic() - began)
        return [up, took, *found], bool(found)


class Exporter:
    """Answers scrapes. `process` None: only the cluster; `cluster` None: only this process."""

    def __init__(self, process: ProcessMetrics | None, cluster: ClusterMetrics | None) -> None:
        self._process = process
        self._cluster = cluster

    async def families(self) -> list[Family]:
        """Everything that is exported here, as of now."""
        cluster = [] if self._cluster is None else await self._cluster.families()
        return [*([] if self._process is None else self._process.families()), *cluster]

    async def exposition(self, accept: str | None = None, more: Iterable[Collector] = ()) -> Exposition:
        """An answer for this `Accept` header: OpenMetrics if it is asked for, else the text format.

        `more` are collectors of your own, such as a registry of prometheus_client.
        """
        return written(await self.families(), accept, more)

    def close(self) -> None:
        """Stop listening to events."""
        if self._process is not None:
            self._process.close()


def written(families: Iterable[Family], accept: str | None = None, more: Iterable[Collector] = ()) -> Exposition:
    """These families in the format that an `Accept` header asks for.

    `choose_encoder` of prometheus_client raises for an invalid version, and echoes the version that it was sent.
    """
    asked = [part.partition(";") for part in (accept or "").lower().split(",")]
    if any(kind.strip() == _OPENMETRICS and "q=0" not in rest.split(";") for kind, _, rest in asked):
        others = b"".join(
            openmetrics.generate_latest(one).removesuffix(_END)  # type: ignore[no-untyped-call]
            for one in more
        )
        return Exposition(as_openmetrics(families).encode() + others + _END, openmetrics.CONTENT_TYPE_LATEST)
    others = b"".join(generate_latest(one) for one in more)
    return Exposition(as_text(families).encode() + others, CONTENT_TYPE_PLAIN_0_0_4)

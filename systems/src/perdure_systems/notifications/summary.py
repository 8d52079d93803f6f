"""The number of notifications by state: one snapshot for the dashboard, the page and Prometheus.

A dashboard must not fail because one of its counts does. If the count fails, or there are no notifications to count,
all numbers are 0 and `is_counted` says so.
"""

from __future__ import annotations

from collections import Counter
from typing import Final

import msgspec
import structlog
from prometheus_client import CollectorRegistry, Gauge
from prometheus_client.registry import Collector

from perdure import Desk
from perdure_systems.notifications.jobs import STATUS_OF
from perdure_systems.notifications.records import which_have

_JOBS_COUNTED_LIMIT: Final = 100_000

log = structlog.get_logger("perdure_systems.notifications")


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """Notifications by status; each number counts at most 100,000."""

    notifications_pending: int = 0
    notifications_failed: int = 0
    notifications_sent: int = 0
    notifications_dead: int = 0
    notifications_total: int = 0
    is_counted: bool = False


async def take_snapshot(desk: Desk | None) -> Snapshot:
    """Count now. Without anything to count, or when counting fails, the snapshot comes all the same, with 0."""
    if desk is None:
        return Snapshot()
    try:
        tallies = await desk.count_by("state", which=which_have(None), cap=_JOBS_COUNTED_LIMIT)
    except Exception as error:  # noqa: BLE001 - if the count fails, the rest of the dashboard is shown
        log.warning("notifications could not be counted", error=f"{type(error).__name__}: {error}")
        return Snapshot()
    found: Counter[str] = Counter()
    for tally in tallies:
        found[STATUS_OF.get(tally.state or "", "")] += tally.jobs
    return Snapshot(
        notifications_pending=found["pending"],
        notifications_failed=found["failed"],
        notifications_sent=found["sent"],
        notifications_dead=found["dead"],
        notifications_total=found.total(),
        is_counted=True,
    )


def as_collector(snapshot: Snapshot) -> Collector:
    """The snapshot's number of dead notifications for Prometheus, beside the engine's own metrics.

    Its name was there before, and is kept. It is a gauge: a requeue makes it smaller. The engine's counter of deaths,
    `perdure_cluster_deaths_total`, never falls.
    """
    registry = CollectorRegistry()
    for name, text, value in (
        ("certctl_notification_dead_total", "Notifications in the dead letters", snapshot.notifications_dead),
        ("certctl_notification_counted", "1 if the notifications could be counted, else 0", snapshot.is_counted),
    ):
        Gauge(name, text, registry=registry).set(value)
    return registry

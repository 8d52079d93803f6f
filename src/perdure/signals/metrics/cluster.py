"""What the database knows of all workers: read with few queries that do not scan jobs.

Counters come from totals that are never deleted, so they survive restarts. Gauges come from counts that end at a cap.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime, timedelta
from typing import Final

from msgspec import Struct

from perdure.domain.gate import BreakerView, Pause
from perdure.domain.jobs.states import JobState
from perdure.domain.schedule import ScheduleView
from perdure.domain.worker import WorkerView
from perdure.kinds.kind import Registry
from perdure.signals.metrics.settings import MetricsSettings
from perdure.storage.operate.failure_groups import GroupRecord
from perdure.storage.operate.statistics import Summed
from perdure.storage.port import Store
from perdure.storage.records import Count, JobFilter
from perdure.storage.time_limits import time_limit

QUERY_TIMEOUT: Final = timedelta(seconds=5)
"""How long all queries may take together. Prometheus gives up after 10 s."""
WINDOWS: Final = {"daily": timedelta(days=1), "weekly": timedelta(days=7), "monthly": timedelta(days=30)}
_JOBS_PER_FRONT: Final = 10  # jobs looked at in each priority of a queue for the one that waits longest
_BUDGETS_SHOWN: Final = 20
_FAILURE_GROUPS_READ: Final = 500
_ALL: Final = JobFilter()


class BudgetUse(Struct, frozen=True):
    """What was spent under a budget's name in a window, and the limit if it is known."""

    name: str
    window: str
    spent: float
    limit: float | None


class Cluster(Struct, frozen=True, kw_only=True):
    """The cluster at one moment."""

    now: datetime
    totals: list[Summed]
    counts: list[Count]
    oldest: Mapping[str, datetime]
    dead: list[GroupRecord]
    workers: list[WorkerView]
    paused: Collection[str]
    breakers: list[BreakerView]
    budgets: list[BudgetUse]
    schedules: list[ScheduleView]


async def read_cluster(store: Store, settings: MetricsSettings, kinds: Registry | None) -> Cluster:
    """Ask the database; raises StoreError."""
    with time_limit(QUERY_TIMEOUT):
        now = await store.now()
        counts = await store.counts(settings.cap)
        return Cluster(
            now=now,
            totals=await store.statistic_totals(),
            counts=counts,
            oldest=await _oldest(store, counts),
            dead=await store.failure_groups(_ALL, _FAILURE_GROUPS_READ),
            workers=await store.workers(),
            paused=_paused(await store.pauses()),
            breakers=await store.breakers(),
            budgets=await _budgets(store, now, kinds),
            schedules=await store.schedules(),
        )


async def _oldest(store: Store, counts: list[Count]) -> dict[str, datetime]:
    """When the oldest ready job of each queue began to wait."""
    ready = sorted({count.queue for count in counts if count.state is JobState.READY})
    oldest: dict[str, datetime] = {}
    for front in await store.fronts(ready, _JOBS_PER_FRONT) if ready else ():
        oldest[front.queue] = min(front.since, oldest.get(front.queue, front.since))
    return oldest


async def _budgets(store: Store, now: datetime, kinds: Registry | None) -> list[BudgetUse]:
    """Limits come from the app's code if it is loaded, otherwise from what workers declared."""
    limits = {one.name: dict(one.limits) for one in await store.budget_limits()}
    for kind in () if kinds is None else kinds.values():
        for name, budget in kind.budgets.items():
            limits[name] = dict(budget.limits)
    names = list(dict.fromkeys((*limits, *await store.budgets(_BUDGETS_SHOWN))))[:_BUDGETS_SHOWN]
    return [
        BudgetUse(name, window, await store.spent(name, now - span), limits.get(name, {}).get(span))
        for name in names
        for window, span in WINDOWS.items()
    ]


def _paused(pauses: list[Pause]) -> set[str]:
    """The queues that are paused as a whole."""
    return {pause.queue for pause in pauses if pause.queue is not None and pause.kind is None and pause.args is None}

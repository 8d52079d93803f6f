"""Everything that the screen shows, read together."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from msgspec import Struct

from perdure.domain.operate.statistics import Group
from perdure.domain.worker import WorkerView
from perdure.operate.attention.need import Need
from perdure.operate.desk import Desk
from perdure.operate.health.checkup import ASSUMED_LEASE
from perdure.operate.views.failure_groups import FailureGroup
from perdure.operate.views.kind_views import KindView
from perdure.operate.views.queue_views import QueueView

SPANS: Final = ("1h", "1d", "7d")
_GROUPS_SHOWN: Final = 50


class Look(Struct, frozen=True, kw_only=True):
    """A snapshot of the system; its times are those of the database's clock."""

    at: datetime
    span: str
    needs: tuple[Need, ...]
    total: Group
    step_seconds: float
    queues: tuple[QueueView, ...]
    kinds: tuple[KindView, ...]
    workers: tuple[WorkerView, ...]
    groups: tuple[FailureGroup, ...]

    def is_lost(self, worker: WorkerView) -> bool:
        """Whether a worker has stopped sending heartbeats: another worker rescues its jobs."""
        return self.at - worker.beat_at > ASSUMED_LEASE

    @property
    def slots(self) -> int:
        """How many jobs the running workers can run at once."""
        return sum(worker.concurrency for worker in self.workers if not self.is_lost(worker))

    @property
    def running(self) -> int:
        """How many jobs run now."""
        return sum(worker.running for worker in self.workers if not self.is_lost(worker))


async def look(desk: Desk, span: str) -> Look:
    """Read everything that the screen shows. No query scans the jobs."""
    statistics = await desk.statistics(span)
    page = await desk.failure_groups(limit=_GROUPS_SHOWN)
    workers = [worker for worker in await desk.workers() if worker.dead_at is None]
    return Look(
        at=await desk.now(),
        span=span,
        needs=tuple(await desk.attention()),
        total=statistics.groups[0],
        step_seconds=statistics.step.total_seconds(),
        queues=tuple(await desk.queues(span)),
        kinds=tuple(await desk.kinds(span)),
        workers=tuple(workers),
        groups=page.groups,
    )

"""Workers as pulse shows them: opening ✿, open, closing ❀, and the jobs of dead ones on their way back."""

from __future__ import annotations

from datetime import datetime
from typing import Final

import msgspec

from perdure import Desk, JobFilter, Page
from perdure_systems.pulse.settings import QUEUE

_FLOWERS: Final = {"opening": "✿", "open": "✿", "quiet": "✿", "closing": "❀", "closed": "❀"}
_DEAD: Final = "dead"
_ORPHANED: Final = "process crashed"


class WorkerShown(msgspec.Struct, frozen=True, kw_only=True):
    """A worker as people see it."""

    name: str
    flower: str
    phase: str
    running: int
    concurrency: int
    since: datetime


class WorkersShown(msgspec.Struct, frozen=True, kw_only=True):
    """The workers of pulse, and what comes back of dead ones: how many jobs, and when the last of them is due."""

    workers: tuple[WorkerShown, ...]
    orphans: int
    orphans_until: datetime | None


async def show_workers(desk: Desk) -> WorkersShown:
    """The workers that serve pulse, the living first."""
    shown = [
        WorkerShown(
            name=worker.name,
            flower="✝" if worker.dead_at and worker.phase != "closed" else _FLOWERS.get(worker.phase.value, "✿"),
            phase=_DEAD if worker.dead_at and worker.phase != "closed" else worker.phase.value,
            running=worker.running,
            concurrency=worker.concurrency,
            since=worker.dead_at or worker.started_at,
        )
        for worker in await desk.workers()
        if QUEUE in worker.queues
    ]
    returning = JobFilter(queue=QUEUE, states="retrying")
    due = [
        job.due_at
        for job in (await desk.jobs(returning, Page(limit=500))).jobs
        if job.reason.startswith(_ORPHANED) and job.due_at is not None
    ]
    return WorkersShown(workers=tuple(shown), orphans=len(due), orphans_until=max(due, default=None))

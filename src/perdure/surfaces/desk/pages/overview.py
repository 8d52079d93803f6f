"""The overview: problems that need a person, then the figures of the system."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from typing import Final

from msgspec import Struct
from starlette.responses import Response

from perdure.domain.jobs.states import PARKED, JobState
from perdure.operate.attention.attention import worst_first
from perdure.operate.attention.need import Need
from perdure.operate.health.checkup import ASSUMED_LEASE
from perdure.operate.views.queue_views import QueueView
from perdure.surfaces.desk.figures import figures_in, figures_of
from perdure.surfaces.desk.rooms import Room
from perdure.surfaces.desk.visit import Visit

NEEDS_FRESH_SECONDS: Final = 3.0
DATABASE_FRESH_SECONDS: Final = 60.0  # seconds; settings and clocks of a database rarely change
_QUEUES_SHOWN: Final = 20
_ORDER: Final = (JobState.READY, JobState.RUNNING, JobState.RETRYING, JobState.SCHEDULED, JobState.WAITING)
_SHOWN: Final = (*_ORDER, JobState.PAUSED, JobState.DEAD)

room = Room("overview")


class Depth(Struct, frozen=True):
    """How many jobs are in one state, over all queues."""

    state: JobState
    jobs: int
    capped: bool


@room.page("/")
async def overview(visit: Visit) -> Response:
    """What needs a person, the figures of the chosen span, and the queues."""
    span = visit.span
    # Concurrently: beside a busy worker, a query spends most of its time waiting for a CPU.
    problems, found, lately, queues, known = await asyncio.gather(
        visit.shared("database", visit.desk.database_problems, DATABASE_FRESH_SECONDS),
        visit.shared("needs", visit.desk.attention, NEEDS_FRESH_SECONDS),
        visit.shared(("statistics", span), lambda: visit.desk.statistics(span)),
        visit.shared(("queues", span), lambda: visit.desk.queues(span, times=False)),
        visit.shared("workers", visit.desk.workers),
    )
    needs = worst_first([*problems, *found])
    now = await visit.now()
    workers = [worker for worker in known if worker.dead_at is None and now - worker.beat_at <= ASSUMED_LEASE]
    return await visit.page(
        "pages/overview.html",
        title="Overview",
        has_span=True,
        now=now,
        needs=keyed(needs),
        figures=figures_of(lately),
        queues=worst_queues(queues),
        all_queues=len(queues),
        figures_in=figures_in,
        depths=depths(queues),
        running=sum(worker.running for worker in workers),
        slots=sum(worker.concurrency for worker in workers),
        workers=len(workers),
        hosts=len({worker.process.host for worker in workers}),
        oldest=min((queue.oldest_ready_at for queue in queues if queue.oldest_ready_at is not None), default=None),
    )


def keyed(needs: Sequence[Need]) -> list[tuple[str, Need]]:
    """Each need with a stable id, so that its row keeps its place while others come and go."""
    seen = Counter[str]()
    rows = []
    for need in needs:
        key = f"need-{need.about}-{need.name}".replace(" ", "-")
        seen[key] += 1
        rows.append((key if seen[key] == 1 else f"{key}-{seen[key]}", need))
    return rows


def worst_queues(queues: list[QueueView], most: int = _QUEUES_SHOWN) -> list[QueueView]:
    """All queues; of very many, only those without workers and those with the most ready jobs."""
    if len(queues) <= most:
        return queues
    return sorted(queues, key=lambda queue: (not (queue.ready and not queue.workers), -queue.ready, queue.name))[:most]


def depths(queues: list[QueueView]) -> list[Depth]:
    """Unfinished jobs and dead letters, by state."""
    jobs = dict.fromkeys(_SHOWN, 0)
    capped = set[JobState]()
    for queue in queues:
        jobs[JobState.READY] += queue.ready
        jobs[JobState.RUNNING] += queue.running
        jobs[JobState.DEAD] += queue.dead
        for state, number in queue.parked.items():
            jobs[state] += number
        capped |= {JobState.READY} if queue.ready_capped else set()
        capped |= {JobState.DEAD} if queue.dead_capped else set()
        capped |= PARKED if queue.parked_capped else set()
    return [Depth(state, number, state in capped) for state, number in jobs.items()]

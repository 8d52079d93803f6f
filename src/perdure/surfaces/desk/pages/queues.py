"""Queues: waiting and running jobs, and their workers; pause and resume."""

from __future__ import annotations

import asyncio
from urllib.parse import quote

from starlette.responses import Response

from perdure.errors import NotFoundError
from perdure.surfaces.desk.figures import figures_in, figures_of
from perdure.surfaces.desk.pages.gates import freed
from perdure.surfaces.desk.pages.workers import rows_of
from perdure.surfaces.desk.rooms import Room
from perdure.surfaces.desk.visit import Visit

room = Room("queues")


@room.page("/queues")
async def queues(visit: Visit) -> Response:
    """All queues."""
    views = await visit.shared(("queues", visit.span), lambda: visit.desk.queues(visit.span, times=False))
    return await visit.page(
        "pages/queues.html", title="Queues", has_span=True, now=await visit.now(), queues=views, figures_in=figures_in
    )


@room.page("/queues/{name:path}")
async def queue(visit: Visit) -> Response:
    """One queue: its figures, its kinds, its workers."""
    name = visit.path("name")
    span = visit.span
    views = await visit.shared(("queues", span), lambda: visit.desk.queues(span, times=False))
    view = next((one for one in views if one.name == name), None)
    if view is None:
        raise NotFoundError(f"there is no queue {name!r} with jobs, workers, pauses or statistics")
    lately, by_kind, known = await asyncio.gather(
        visit.shared(("statistics of queue", name, span), lambda: visit.desk.statistics(span, queue=name)),
        visit.shared(("kinds of", name, span), lambda: visit.desk.statistics(span, by="kind", queue=name, times=False)),
        visit.shared("workers", visit.desk.workers),
    )
    now = await visit.now()
    workers = [worker for worker in known if name in worker.queues and worker.dead_at is None]
    return await visit.page(
        "pages/queue.html",
        title="Queue",
        has_span=True,
        now=now,
        queue=view,
        figures=figures_of(lately),
        kinds=sorted(by_kind.groups, key=lambda group: -group.total.attempts),
        figures_in=figures_in,
        workers=rows_of(workers, now),
    )


@room.command("/queues/{name:path}/pause", confirm="Pause the queue {name}?")
async def pause(visit: Visit) -> Response:
    """Pause a queue."""
    name = visit.path("name")
    await visit.desk.holds.pause(queue=name, why=visit.why)
    return visit.done(
        f"Queue {name} is paused. Running jobs continue.", back=visit.back(f"/queues/{quote(name, safe='')}")
    )


@room.command("/queues/{name:path}/resume")
async def resume(visit: Visit) -> Response:
    """End all pauses that name a queue."""
    name = visit.path("name")
    resumed = await visit.desk.holds.resume(queue=name, why=visit.why)
    return visit.done(
        f"Queue {name} is resumed{freed(resumed.jobs)}.",
        back=visit.back(f"/queues/{quote(name, safe='')}"),
    )

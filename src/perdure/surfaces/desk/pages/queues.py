"""Queues: what waits, what runs, who serves them; pause and resume."""

from __future__ import annotations

from urllib.parse import quote

from starlette.responses import Response

from perdure.errors import NotFoundError
from perdure.surfaces.desk.figures import figures_in
from perdure.surfaces.desk.rooms import Room
from perdure.surfaces.desk.visit import Visit

room = Room("queues")


@room.page("/queues")
async def queues(visit: Visit) -> Response:
    """All queues."""
    views = await visit.shared(("queues", visit.span), lambda: visit.desk.queues(visit.span))
    return await visit.page(
        "pages/queues.html", title="Queues", has_span=True, now=await visit.now(), queues=views, figures_in=figures_in
    )


@room.page("/queues/{name:path}")
async def queue(visit: Visit) -> Response:
    """One queue: its figures, its kinds, its workers."""
    name = visit.path("name")
    views = await visit.shared(("queues", visit.span), lambda: visit.desk.queues(visit.span))
    view = next((one for one in views if one.name == name), None)
    if view is None:
        raise NotFoundError(f"there is no queue {name!r} with jobs, workers, pauses or statistics")
    by_kind = await visit.shared(
        ("kinds of", name, visit.span), lambda: visit.desk.statistics(visit.span, by="kind", queue=name)
    )
    workers = [
        worker
        for worker in await visit.shared("workers", visit.desk.workers)
        if name in worker.queues and worker.dead_at is None
    ]
    return await visit.page(
        "pages/queue.html",
        title="Queue",
        has_span=True,
        now=await visit.now(),
        queue=view,
        figures=figures_in(view.statistics),
        kinds=sorted(by_kind.groups, key=lambda group: -group.total.attempts),
        figures_in=figures_in,
        workers=workers,
    )


@room.command("/queues/{name:path}/pause", confirm="Pause the queue {name}?")
async def pause(visit: Visit) -> Response:
    """Let no more jobs of a queue start."""
    name = visit.path("name")
    await visit.desk.holds.pause(queue=name, why=visit.why)
    return visit.done(
        f"Queue {name} is paused. Jobs that run already go on.", back=visit.back(f"/queues/{quote(name, safe='')}")
    )


@room.command("/queues/{name:path}/resume")
async def resume(visit: Visit) -> Response:
    """End all pauses that name a queue."""
    name = visit.path("name")
    await visit.desk.holds.resume(queue=name, why=visit.why)
    return visit.done(f"Queue {name} is resumed.", back=visit.back(f"/queues/{quote(name, safe='')}"))

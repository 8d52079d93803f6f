"""Kinds of jobs: how often they run, how long they take, how many fail; pause and resume."""

from __future__ import annotations

import asyncio
from urllib.parse import quote

from starlette.responses import Response

from perdure.errors import NotFoundError
from perdure.surfaces.desk.figures import figures_in, figures_of
from perdure.surfaces.desk.pages.gates import freed
from perdure.surfaces.desk.rooms import Room
from perdure.surfaces.desk.visit import Visit

room = Room("kinds")


@room.page("/kinds")
async def kinds(visit: Visit) -> Response:
    """All kinds, the busiest first."""
    views = await visit.shared(("kinds", visit.span), lambda: visit.desk.kinds(visit.span))
    return await visit.page(
        "pages/kinds.html",
        title="Kinds",
        has_span=True,
        now=await visit.now(),
        kinds=sorted(views, key=lambda view: (-view.statistics.total.attempts, view.name)),
        figures_in=figures_in,
    )


@room.page("/kinds/{name:path}")
async def kind(visit: Visit) -> Response:
    """One kind: its figures, and where it runs."""
    name = visit.path("name")
    span = visit.span
    views = await visit.shared(("kinds", span), lambda: visit.desk.kinds(span))
    view = next((one for one in views if one.name == name), None)
    if view is None:
        raise NotFoundError(f"there is no kind {name!r} with jobs, pauses, statistics or a declaration")
    lately, by_queue = await asyncio.gather(
        visit.shared(("statistics of kind", name, span), lambda: visit.desk.statistics(span, kind=name)),
        visit.shared(
            ("queues of", name, span), lambda: visit.desk.statistics(span, by="queue", kind=name, times=False)
        ),
    )
    return await visit.page(
        "pages/kind.html",
        title="Kind",
        has_span=True,
        now=await visit.now(),
        kind=view,
        figures=figures_of(lately),
        queues=sorted(by_queue.groups, key=lambda group: -group.total.attempts),
        figures_in=figures_in,
    )


@room.command("/kinds/{name:path}/pause", confirm="Pause the kind {name}?")
async def pause(visit: Visit) -> Response:
    """Pause a kind in all queues."""
    name = visit.path("name")
    await visit.desk.holds.pause(kind=name, why=visit.why)
    return visit.done(
        f"Kind {name} is paused. Running jobs continue.", back=visit.back(f"/kinds/{quote(name, safe='')}")
    )


@room.command("/kinds/{name:path}/resume")
async def resume(visit: Visit) -> Response:
    """End all pauses that name a kind."""
    name = visit.path("name")
    resumed = await visit.desk.holds.resume(kind=name, why=visit.why)
    return visit.done(
        f"Kind {name} is resumed{freed(resumed.jobs)}.",
        back=visit.back(f"/kinds/{quote(name, safe='')}"),
    )

"""Flows: waiting jobs, what they wait for, and the progress of their children, drawn for the newest jobs."""

from __future__ import annotations

from typing import Final

from msgspec import Struct
from starlette.responses import Response

from perdure.domain.flows.flow import Child
from perdure.operate.views.flow_views import FlowPage, FlowView
from perdure.surfaces.desk.charts.tree import Node
from perdure.surfaces.desk.pages.jobs.job import telling
from perdure.surfaces.desk.rooms import Room
from perdure.surfaces.desk.view.states import colour
from perdure.surfaces.desk.visit import Visit

room = Room("flows")
_FLOWS_PER_PAGE: Final = 50
_FLOWS_DRAWN: Final = 4
_CHILDREN_DRAWN: Final = 8
_CHILDREN_READ: Final = 500


class Drawn(Struct, frozen=True):
    """A parent and the boxes of its picture."""

    flow: FlowView
    nodes: tuple[Node, ...]


@room.page("/flows")
async def flows(visit: Visit) -> Response:
    """Waiting jobs, newest first."""
    before = visit.query("before") or None
    page: FlowPage = await visit.shared(
        ("flows", before), lambda: visit.desk.flows(limit=_FLOWS_PER_PAGE, before=before)
    )
    parents = [flow for flow in page.flows if flow.families]
    drawn = [Drawn(flow, tuple(await _nodes(visit, flow))) for flow in parents[:_FLOWS_DRAWN]]
    return await visit.page(
        "pages/jobs/flows.html",
        title="Flows",
        now=await visit.now(),
        drawn=drawn,
        parents=parents,
        others=[flow for flow in page.flows if not flow.families],
        next=visit.url("/flows", before=page.next) if page.next else None,
        first=visit.url("/flows") if before else None,
        is_first=before is None,
    )


async def _nodes(visit: Visit, flow: FlowView) -> list[Node]:
    """The parent, a box for each family, and the most informative children of the families that it waits for."""
    job = flow.job
    awaited = {wait.name for wait in flow.waits if wait.what == "children"}
    nodes = [Node(id=job.id, label=job.kind, colour=colour(job.state), url=visit.url(f"/jobs/{job.id}"), note="waits")]
    for family in flow.families:
        box = f"{job.id}/{family.key}"
        done = family.succeeded + family.failed
        tone = "dead" if family.failed else "ok" if done == family.total else "running"
        nodes.append(Node(id=box, label=family.key, colour=tone, parent=job.id, note=f"{done} of {family.total}"))
        if family.key not in awaited:
            continue
        known = await visit.desk.fates_of(job.id, family.key, limit=_CHILDREN_READ)
        nodes += [_child(visit, child, box) for child in telling(known, _CHILDREN_DRAWN)]
        if family.total > _CHILDREN_DRAWN:
            left = f"and {family.total - _CHILDREN_DRAWN:,} more"
            nodes.append(
                Node(id=f"{box}/more", label=left, parent=box, url=visit.url(f"/jobs/{job.id}", tab="children"))
            )
    return nodes


def _child(visit: Visit, child: Child, box: str) -> Node:
    return Node(
        id=f"{box}/{child.number}",
        label=child.kind,
        colour=colour(child.fate) if child.fate else "ready",
        parent=box,
        url=visit.url(f"/jobs/{child.job_id}"),
        said=f"{child.kind} {child.job_id}: {child.fate or 'not final'}",
        note=str(child.fate or "open"),
    )

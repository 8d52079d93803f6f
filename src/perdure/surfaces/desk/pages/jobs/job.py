"""One job: why it is not running and the remedy, its timeline to scale, and all its data."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final
from urllib.parse import quote

from msgspec import Struct
from msgspec.structs import replace
from starlette.responses import RedirectResponse, Response

from perdure.domain.duration import parse_duration
from perdure.domain.flows.flow import Child
from perdure.domain.jobs.job import JobView
from perdure.domain.jobs.states import FINAL, PARKED, JobState
from perdure.errors import ArgumentError, NotFoundError
from perdure.operate.records import JobDetail
from perdure.operate.views.retry_preview import preview_of_job
from perdure.operate.why.parked import is_looked_at_again
from perdure.policy.retries.preview import PlannedAt
from perdure.surfaces.desk.charts.cells import Cell
from perdure.surfaces.desk.charts.tree import Node
from perdure.surfaces.desk.pages.gates import gates_of, known_limits
from perdure.surfaces.desk.pages.jobs.approvals import give_answer, question_of
from perdure.surfaces.desk.rooms import Room
from perdure.surfaces.desk.view.changes import account_of
from perdure.surfaces.desk.view.job_timeline import job_timeline
from perdure.surfaces.desk.view.states import colour
from perdure.surfaces.desk.visit import Visit

room = Room("jobs")
_TABS: Final = ("steps", "attempts", "data", "children", "gates", "log", "audit")
CHILDREN_DRAWN: Final = 24
_CELLS_DRAWN: Final = 1_000
_AUDIT_ENTRIES_SHOWN: Final = 50
_ATTEMPTS_AHEAD: Final = 6


class FamilyPart(Struct, frozen=True):
    """The drawn children of one key: boxes for a few of them, and a cell for each of many."""

    key: str
    total: int
    succeeded: int
    failed: int
    shown: tuple[Child, ...] = ()
    cells: tuple[Cell, ...] = ()


@room.page("/jobs/{id}")
async def job(visit: Visit) -> Response:
    """The page of a job, found by its id or ref."""
    name = visit.path("id")
    detail = await visit.desk.job(name)
    if detail.job.id != name:
        return RedirectResponse(visit.url(_path(detail.job)), 303)
    why = await visit.desk.why(detail.job.id)
    now = await visit.now()
    ahead = _ahead(visit, detail.job, now)
    tab = _tab(visit, detail)
    families = await _families(visit, detail, tab)
    audit = await visit.desk.audit(job=detail.job.id, limit=_AUDIT_ENTRIES_SHOWN)
    return await visit.page(
        "pages/jobs/job.html",
        title="Job",
        now=now,
        detail=detail,
        job=detail.job,
        why=why,
        timeline=job_timeline(detail, ahead, now),
        ahead=ahead,
        gates=gates_of(detail.job.kind, (await known_limits(visit)).get(detail.job.kind, ())),
        families=families,
        nodes=_nodes(visit, detail.job, families),
        audit=[(entry, account_of(entry)) for entry in audit.entries],
        tab=tab,
        is_final=detail.job.state in FINAL,
        is_parked=detail.job.state in PARKED,
        is_looked_at_again=is_looked_at_again(detail.job),
    )


@room.command("/jobs/{id}/requeue", confirm="Requeue job {id}? It starts again with all its attempts.")
async def requeue(visit: Visit) -> Response:
    """Requeue a finished job."""
    done = await visit.desk.requeue(visit.path("id"), why=visit.why)
    return _done(visit, f"Requeued {done.ids[0]}.")


@room.command("/jobs/{id}/cancel", confirm="Cancel job {id}? Its children are cancelled with it.")
async def cancel(visit: Visit) -> Response:
    """Cancel a job that is not final."""
    done = await visit.desk.cancel(visit.path("id"), why=visit.why)
    return _done(visit, "The running attempt was told to stop." if done.asked else "The job is cancelled.")


@room.command("/jobs/{id}/run-now")
async def run_now(visit: Visit) -> Response:
    """Make a parked job ready."""
    await visit.desk.run_now(visit.path("id"), why=visit.why)
    return _done(visit, "The job is ready.")


@room.command("/jobs/{id}/reschedule")
async def reschedule(visit: Visit) -> Response:
    """Reschedule a parked job: a delay from now."""
    given = visit.field("delay").strip()
    if not given:
        raise ArgumentError("delay", "is missing: write how long to wait from now, such as 30m or 2h")
    run_at = await visit.desk.now() + parse_duration("delay", given)
    await visit.desk.reschedule(visit.path("id"), run_at, why=visit.why)
    return _done(visit, f"The job comes back at {run_at:%Y-%m-%d %H:%M:%S} UTC.")


@room.command("/jobs/{id}/mark")
async def mark(visit: Visit) -> Response:
    """Set the job's mark, or remove it."""
    word = visit.field("mark").strip() or None
    await visit.desk.mark(visit.path("id"), word, why=visit.why)
    return _done(visit, "The mark is removed." if word is None else f"Marked as {word}.")


@room.command("/jobs/{id}/delete", confirm="Delete job {id} and its history for good?")
async def delete(visit: Visit) -> Response:
    """Delete a job with its history."""
    await visit.desk.delete(visit.path("id"), why=visit.why)
    return visit.done(f"Deleted {visit.path('id')}.", back="/jobs")


@room.command("/jobs/{id}/answer", confirm=question_of)
async def answer(visit: Visit) -> Response:
    """Answer the job's question."""
    return _done(visit, await give_answer(visit))


@room.command("/jobs/{id}/remedy")
async def remedy(visit: Visit) -> Response:
    """Apply the remedy for a job that is not running; it is determined again, not taken from the form."""
    name = visit.path("id")
    offered = (await visit.desk.why(name)).remedy
    if offered is None or offered.action != visit.field("action") or offered.target != visit.field("target"):
        return _done(visit, "Nothing was done: the job has moved on since the page was shown.")
    match offered.action:
        case "resume":
            await visit.desk.holds.resume(offered.target, why=visit.why)
        case "close_breaker":
            await visit.desk.holds.close_breaker(offered.target, why=visit.why)
        case "run_now":
            await visit.desk.run_now(name, why=visit.why)
        case "requeue":
            await visit.desk.requeue(name, why=visit.why)
        case "loud":
            await visit.desk.quiet([offered.target], quiet=False, why=visit.why)
    return _done(visit, f"Done: {offered.label}.")


def _done(visit: Visit, sentence: str) -> Response:
    return visit.done(sentence, back=f"/jobs/{quote(visit.path('id'), safe='')}")


def _path(view: JobView) -> str:
    return f"/jobs/{view.id}"


def _tab(visit: Visit, detail: JobDetail) -> str:
    """The tab to show: the chosen one, or the most useful one."""
    if (chosen := visit.query("tab")) in _TABS:
        return chosen
    if detail.steps:
        return "steps"
    if detail.attempts:
        return "attempts"
    return "children" if detail.families else "data"


def _ahead(visit: Visit, view: JobView, now: datetime) -> tuple[PlannedAt, ...]:
    """The future attempts. Without the policy, which is in code, only the next one, if it has a date."""
    try:
        known = preview_of_job(visit.frame.kinds, view, now, _ATTEMPTS_AHEAD)
    except (ArgumentError, NotFoundError):  # another app's kind, or a policy that cannot be read
        known = None
    if known is not None:
        return known.plan[1:] if view.state is JobState.RUNNING else known.plan
    if view.state not in PARKED or view.due_at is None:
        return ()
    begins = max(view.due_at, now)
    return (PlannedAt(view.failures + view.crashes + 1, begins, begins),)


async def _families(visit: Visit, detail: JobDetail, tab: str) -> list[FamilyPart]:
    """The families of a job; children are read only for the tab that shows them."""
    parts = []
    for family in detail.families:
        part = FamilyPart(family.key, family.total, family.succeeded, family.failed)
        if tab == "children":
            known = await visit.desk.fates_of(detail.job.id, family.key, limit=_CELLS_DRAWN)
            cells = [_cell(visit, child) for child in known] if family.total > CHILDREN_DRAWN else []
            part = replace(part, shown=telling(known, CHILDREN_DRAWN), cells=tuple(cells))
        parts.append(part)
    return parts


def telling(children: Sequence[Child], most: int) -> tuple[Child, ...]:
    """The most informative of many children: failed ones first, then unfinished ones; in their order."""
    if len(children) <= most:
        return tuple(children)
    first = {JobState.DEAD: 0, JobState.CANCELLED: 1, None: 2}
    chosen = sorted(children, key=lambda child: (first.get(child.fate, 3), child.number))[:most]
    return tuple(sorted(chosen, key=lambda child: child.number))


def _cell(visit: Visit, child: Child) -> Cell:
    tone = colour(child.fate) if child.fate else "ready"
    said = f"{child.number}: {child.kind} {child.job_id}, {child.fate or 'not final'}"
    return Cell(tone, visit.url(f"/jobs/{child.job_id}"), said)


def _nodes(visit: Visit, view: JobView, families: list[FamilyPart]) -> list[Node]:
    """The job, its parent and its children, as a tree."""
    if not families and view.parent is None:
        return []
    nodes = []
    if view.parent is not None:
        nodes.append(Node(id=view.parent, label="parent", url=visit.url(f"/jobs/{view.parent}"), said=view.parent))
    nodes.append(Node(id=view.id, label=view.kind, colour=colour(view.state), parent=view.parent, note="this job"))
    for family in families:
        for child in family.shown:
            state = child.fate or JobState.RUNNING
            nodes.append(
                Node(
                    id=child.job_id,
                    label=child.kind,
                    colour=colour(state) if child.fate else "ready",
                    parent=view.id,
                    url=visit.url(f"/jobs/{child.job_id}"),
                    said=f"{child.kind} {child.job_id}: {child.fate or 'not final'}",
                    note=str(child.fate or "open"),
                )
            )
    return nodes

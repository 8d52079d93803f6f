"""What people do to jobs: pause, resume, cancel, delete. Everything is in the audit trail."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from perdure import ConflictError, Desk, JobFilter, JobState, JobView, NotFoundError, Page
from perdure_systems.pulse.jobs import records
from perdure_systems.pulse.log_lines import job_id_of

_FINAL: Final = {JobState.SUCCEEDED, JobState.DEAD, JobState.CANCELLED}
_CHILD: Final = "pulse.analyse"


async def find(desk: Desk, shown: str) -> JobView:
    """The job behind an id as people see it; raises NotFoundError."""
    try:
        view = (await desk.job(job_id_of(shown), lines=0)).job
    except (NotFoundError, ValueError):
        raise NotFoundError(f"there is no job {shown!r}") from None
    if not view.kind.startswith("pulse."):
        raise NotFoundError(f"there is no job {shown!r}")
    return view


async def pause(desk: Desk, shown: str, why: str = "paused by an operator") -> JobView:
    """Pause a job and its children; running ones continue. Raises ConflictError if it has ended."""
    view = await find(desk, shown)
    if view.state in _FINAL:
        raise ConflictError(f"job {shown} has ended: there is nothing to pause")
    if await _holds_on(desk, view):
        raise ConflictError(f"job {shown} is paused already: resume it first")
    for kind, args in _rules(view):
        await desk.holds.pause(kind=kind, args=args, why=why)
    return view


async def resume(desk: Desk, shown: str) -> JobView:
    """Resume a paused job: an operator's pause ends, and gates are checked again now."""
    view = await find(desk, shown)
    holds = await _holds_on(desk, view)
    if holds:
        await desk.holds.resume(holds)
    elif view.state is JobState.PAUSED:
        await desk.run_now(view.id)
    else:
        raise ConflictError(f"job {shown} is not paused: there is nothing to resume")
    return view


async def cancel(desk: Desk, shown: str) -> JobView:
    """Cancel a job and its children; raises ConflictError if it has ended."""
    view = await find(desk, shown)
    await desk.cancel(view.id, why="cancelled by an operator")
    await _let_go(desk, view)
    return view


async def delete(desk: Desk, shown: str) -> JobView:
    """Delete a job and its document. Active children are cancelled, finished ones stay."""
    view = await find(desk, shown)
    await desk.delete(view.id)
    await _let_go(desk, view)
    if view.kind != _CHILD:
        await records.forget(view.arguments["document"])
    return view


async def children_of(desk: Desk, view: JobView, most: int) -> list[JobView]:
    """The children of a job, in their order."""
    ids = (await desk.children(view.id))[:most]
    if not ids:
        return []
    found = {child.id: child for child in (await desk.jobs(JobFilter(ids=tuple(ids)), Page(limit=most))).jobs}
    return [found[child] for child in ids if child in found]


def _rules(view: JobView) -> list[tuple[str, dict[str, Any]]]:
    """Which jobs a pause of this one means: itself, and its children, which know their document."""
    document = {"document": view.arguments["document"]}
    if view.kind == _CHILD:
        return [(_CHILD, {**document, "number": view.arguments["number"]})]
    return [(view.kind, document), (_CHILD, document)]


async def _holds_on(desk: Desk, view: JobView) -> list[str]:
    rules = _rules(view)
    return [hold.id for hold in await desk.holds.pauses() if any(_is_rule(hold, *rule) for rule in rules)]


def _is_rule(hold: Any, kind: str, args: dict[str, Any]) -> bool:
    return hold.kind == kind and hold.args is not None and msgspec.json.decode(hold.args) == args


async def _let_go(desk: Desk, view: JobView) -> None:
    if holds := await _holds_on(desk, view):
        await desk.holds.resume(holds)

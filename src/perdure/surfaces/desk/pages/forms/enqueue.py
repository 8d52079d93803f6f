"""Enqueue a job by hand, if the app is loaded: its code checks the arguments."""

from __future__ import annotations

from typing import Any, Final

from starlette.responses import Response

from perdure.app.app import App
from perdure.app.by_name import typed_arguments
from perdure.domain.jobs.job import Intake, NewJob
from perdure.errors import ArgumentError, ConflictError, NotFoundError, PayloadError
from perdure.kinds.kind import Kind
from perdure.surfaces.desk.pages.forms.written import REFUSALS, command_line, read_arguments, read_priority, show_form
from perdure.surfaces.desk.rooms import Room
from perdure.surfaces.desk.visit import Visit

room = Room("jobs")
_EMPTY: Final = {"kind": "", "args": "{}", "queue": "", "delay": "", "priority": "", "ref": ""}
_SAID: Final = {
    Intake.NEW: "Enqueued job {id}.",
    Intake.EXISTING: "Job {id} already exists: it has the same unique key.",
    Intake.REPLACED: "Job {id} replaced the one with the same unique key.",
}


@room.page("/enqueue")
async def form(visit: Visit) -> Response:
    """The form for a job; `?kind=` fills in the kind."""
    return await _form(visit)


@room.command("/enqueue")
async def enqueue(visit: Visit) -> Response:
    """Enqueue the job, or show the form again with the error."""
    app = visit.frame.app
    if app is None or visit.field("show"):
        return await _form(visit, None if app else ConflictError("only the app's code can check the arguments"))
    try:
        new = _read_job(visit, app)
        receipt = await visit.desk.enqueue(new, why=visit.why)
    except REFUSALS as error:
        return await _form(visit, error)
    app.enqueued.note([new], [receipt])
    return visit.done(_SAID[receipt.intake].format(id=receipt.job_id), back=f"/jobs/{receipt.job_id}")


def _read_job(visit: Visit, app: App) -> NewJob:
    given = {name: visit.field(name).strip() for name in _EMPTY}
    if not given["kind"]:
        raise ArgumentError("kind", f"is missing: write one of {', '.join(sorted(app.kinds)[:10]) or 'the app'}")
    known = typed_arguments(app, given["kind"], read_arguments(given["args"] or "{}"))
    prepared = app.job_named(given["kind"]).using(
        queue=given["queue"] or None,
        delay=given["delay"] or None,
        priority=read_priority(given["priority"]) if given["priority"] else None,
        ref=given["ref"] or None,
    )
    return prepared.call(**known).job


async def _form(visit: Visit, error: Exception | None = None) -> Response:
    kinds = visit.frame.kinds
    wrong = "args" if isinstance(error, PayloadError) else "kind" if isinstance(error, NotFoundError) else ""
    name = visit.field("kind") if visit.form else visit.query("kind")
    return await show_form(
        visit,
        "pages/forms/enqueue.html",
        title="Enqueue",
        usual=_EMPTY,
        error=error,
        wrong=wrong,
        kinds=sorted(kinds or ()),
        known=_parameters(kinds[name]) if kinds and name in kinds else [],
        knows_code=kinds is not None,
        cli_line=_cli(visit),
    )


def _parameters(kind: Kind) -> list[tuple[str, bool]]:
    """The handler's parameters, and whether each is required."""
    return [(each.name, each.default is each.empty) for each in kind.signature.parameters]


def _cli(visit: Visit) -> str:
    written: dict[str, Any] = {name: visit.field(name).strip() for name in (*_EMPTY, "why")}
    kind = written.pop("kind") or visit.query("kind") or "KIND"
    if visit.frame.app is None:
        written["app"] = "your_module:app"  # only the app's code can check the arguments
    return command_line(["enqueue", kind], written)

"""Pause jobs of a queue or kind, optionally only those with certain arguments, or only until a time."""

from __future__ import annotations

from typing import Final

from starlette.responses import Response

from perdure.errors import ArgumentError
from perdure.surfaces.desk.pages.forms.written import REFUSALS, command_line, read_arguments, show_form
from perdure.surfaces.desk.rooms import Room
from perdure.surfaces.desk.view.moments import read_future
from perdure.surfaces.desk.visit import Visit

room = Room("gates")
_EMPTY: Final = {"queue": "", "kind": "", "args": "", "until": ""}


@room.page("/pause")
async def form(visit: Visit) -> Response:
    """The form for a pause; `?kind=` and `?queue=` fill in what is paused."""
    return await _form(visit)


@room.command("/pause")
async def pause(visit: Visit) -> Response:
    """Pause the jobs, or show the form again with the error."""
    if visit.field("show"):
        return await _form(visit)
    given = {name: visit.field(name).strip() for name in _EMPTY}
    try:
        args = read_arguments(given["args"]) if given["args"] else None
        if args == {}:
            raise ArgumentError("args", "must name at least one argument, or be empty for all jobs")
        made = await visit.desk.holds.pause(
            queue=given["queue"] or None,
            kind=given["kind"] or None,
            args=args,
            until=read_future("until", given["until"], await visit.desk.now()),
            why=visit.why,
        )
    except REFUSALS as error:
        return await _form(visit, error)
    end = "until it is resumed" if made.until is None else f"until {made.until:%Y-%m-%d %H:%M:%S} UTC"
    check = await visit.desk.holds.check_pause(made)
    noted = "".join(f" But {sentence}{'' if sentence.endswith('?') else '.'}" for sentence in check.unknown)
    return visit.done(f"Paused {end}. Running jobs continue.{noted}", back="/gates")


async def _form(visit: Visit, error: Exception | None = None) -> Response:
    given = {name: (visit.field(name) if visit.form else visit.query(name)).strip() for name in (*_EMPTY, "why")}
    if given["until"][:1].isdecimal() and "-" not in given["until"]:
        given["until"] = f"+{given['until']}"  # a span, as the command line writes it
    return await show_form(
        visit,
        "pages/forms/pause.html",
        title="Pause",
        usual=_EMPTY,
        error=error,
        kinds=sorted(visit.frame.kinds or ()),
        cli_line=command_line(["pause"], given),
    )

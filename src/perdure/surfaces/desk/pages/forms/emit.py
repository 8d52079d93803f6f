"""Emit an event to the jobs that wait for it."""

from __future__ import annotations

from typing import Final

from starlette.responses import Response

from perdure.errors import ArgumentError, PayloadError
from perdure.flows.events import event_payload
from perdure.operate.wording import some
from perdure.surfaces.desk.pages.forms.written import REFUSALS, command_line, read_json, show_form
from perdure.surfaces.desk.rooms import MOST_FORM_BYTES, Room
from perdure.surfaces.desk.visit import Visit

room = Room("flows")
_EMPTY: Final = {"event": "", "payload": ""}


@room.page("/emit")
async def form(visit: Visit) -> Response:
    """The form for an event; `?event=` fills in its name."""
    return await _form(visit)


@room.command("/emit")
async def emit(visit: Visit) -> Response:
    """Emit the event, or show the form again with the error."""
    if visit.field("show"):
        return await _form(visit)
    event, written = visit.field("event").strip(), visit.field("payload").strip()
    try:
        if not event:
            raise ArgumentError("event", "is missing: write the name that jobs wait for")
        payload = event_payload(event, read_json("payload", written) if written else None, MOST_FORM_BYTES)
        emission = await visit.desk.emit(event, payload, why=visit.why)
    except REFUSALS as error:
        return await _form(visit, error)
    if emission.is_first:
        return visit.done(f"Emitted {event}: {some(emission.woken, 'job')} woken.", back="/flows")
    return visit.done(
        f"{event} was emitted before, at {emission.at:%Y-%m-%d %H:%M:%S} UTC: that is kept.", back="/flows"
    )


async def _form(visit: Visit, error: Exception | None = None) -> Response:
    given = {"payload": visit.field("payload").strip(), "why": visit.field("why").strip()}
    event = visit.field("event").strip() or visit.query("event") or "EVENT"
    return await show_form(
        visit,
        "pages/forms/emit.html",
        title="Emit an event",
        usual=_EMPTY,
        error=error,
        wrong="payload" if isinstance(error, PayloadError) else "",
        cli_line=command_line(["emit", event], given),
    )

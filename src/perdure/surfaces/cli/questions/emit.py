"""`perdure emit`: emit an event to the jobs waiting for it."""

from __future__ import annotations

from typing import Annotated, Final

import typer

from perdure.domain.flows.flow import Emission
from perdure.flows.events import event_payload
from perdure.operate.desk import Desk
from perdure.surfaces.cli import options
from perdure.surfaces.cli.exits import Exit
from perdure.surfaces.cli.session import with_desk
from perdure.surfaces.cli.terminal.asking import some
from perdure.surfaces.cli.terminal.hostile import one_line
from perdure.surfaces.cli.terminal.output import plain, print_json, say, unpacked
from perdure.surfaces.cli.terminal.reading import read_json
from perdure.surfaces.cli.terminal.times import absolute

_PAYLOAD_LIMIT_BYTES: Final = 64 * 1024

Event = Annotated[str, typer.Argument(metavar="EVENT", help="The event's name.", show_default=False)]
Payload = Annotated[str | None, typer.Option("--payload", metavar="JSON", help="The payload.")]


def emit(
    event: Event,
    payload: Payload = None,
    url: options.Url = None,
    why: options.Why = None,
    as_json: options.Json = False,
) -> None:
    """Emit an event and wake the jobs waiting for it.

    The first emission is kept: emitting again changes nothing.
    """
    value = None if payload is None else read_json("--payload", payload)
    text = event_payload(event, value, _PAYLOAD_LIMIT_BYTES)

    async def act(desk: Desk) -> Emission:
        return await desk.emit(event, text, why=why)

    _report(with_desk(url, act), as_json=as_json)


def _report(emission: Emission, *, as_json: bool) -> None:
    name = one_line(emission.event)
    if as_json:
        print_json({**plain(emission), "payload": unpacked(emission.payload)})
    elif emission.is_first:
        say(f"{name} emitted: {some(emission.woken, 'job')} woken.", "bold")
    else:
        kept = "without a payload" if emission.payload is None else f"with {one_line(emission.payload, 200)}"
        say(f"{name} was emitted before, at {absolute(emission.at)}, {kept}: that is kept.", "yellow")
    raise typer.Exit(Exit.OK if emission.is_first else Exit.CONFLICT)

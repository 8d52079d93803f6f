"""`perdure events`: the log of events that other programs follow."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.text import Text

from perdure.domain.duration import format_duration
from perdure.operate.commands.feed import EventPage, FeedState, event_filter
from perdure.operate.desk import Desk
from perdure.surfaces.cli import options
from perdure.surfaces.cli.session import with_desk
from perdure.surfaces.cli.terminal.hostile import one_line
from perdure.surfaces.cli.terminal.output import console, plain, print_json, say
from perdure.surfaces.cli.terminal.pieces import cell, columns

events = typer.Typer(help="Log events for programs that follow them, and look at the log.", no_args_is_help=True)

Keep = Annotated[
    str | None,
    typer.Option("--keep", metavar="SPAN", help="How long to keep each, as 3d; default: as before, or 3d."),
]
After = Annotated[str | None, typer.Option("--after", metavar="CURSOR", help="After this event; default: all.")]
Limit = Annotated[int, typer.Option("--limit", help="Look at this many.")]
Types = Annotated[
    list[str] | None, typer.Option("--type", metavar="TYPE", help="Only this type, as job.died; may be repeated.")
]


@events.command("status")
def status(url: options.Url = None, as_json: options.Json = False) -> None:
    """Show whether events are logged, for how long they are kept, and the oldest and newest cursor."""
    _print_state(with_desk(url, lambda desk: desk.feed.state()), as_json=as_json)


@events.command("on")
def switch_on(
    keep: Keep = None, url: options.Url = None, why: options.Why = None, as_json: options.Json = False
) -> None:
    """Start to log events; on PostgreSQL as the owner of the tables."""
    _print_state(with_desk(url, lambda desk: desk.feed.switch_on(keep=keep, why=why)), as_json=as_json)


@events.command("off")
def switch_off(url: options.Url = None, why: options.Why = None, as_json: options.Json = False) -> None:
    """Stop logging events, and delete the logged ones."""
    _print_state(with_desk(url, lambda desk: desk.feed.switch_off(why=why)), as_json=as_json)


@events.command("list")
def list_events(
    after: After = None,
    limit: Limit = 50,
    types: Types = None,
    url: options.Url = None,
    as_json: options.Json = False,
) -> None:
    """List logged events, oldest first."""

    async def look(desk: Desk) -> EventPage:
        return await desk.feed.events(after, limit=limit, wanted=event_filter(types or (), named="type"))

    page = with_desk(url, look)
    if as_json:
        print_json(plain(page))
        return
    if page.events:
        table = columns("At", "Type", "Subject", "Kind", giving_way={"Kind"})
        for one in page.events:
            at = Text(one.at.strftime("%m-%d %H:%M:%S"))
            table.add_row(at, Text(one.type), Text(one_line(one.subject)), cell(one.kind or "", "dim"))
        console().print(table)
    say(f"More: --after {page.next}" if page.more else f"No more. Later events: --after {page.next}", "dim")


def _print_state(state: FeedState, *, as_json: bool) -> None:
    if as_json:
        print_json(plain(state))
    elif state.keep is None:
        say("Events are not logged.", "bold")
    else:
        say(f"Events are logged and kept for {format_duration(state.keep)}.", "bold")
        say(f"Oldest cursor {state.oldest}, from now on {state.end}.", "dim")

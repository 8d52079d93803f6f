"""`perdure audit`: who did what."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Final

import typer
from rich.text import Text

from perdure.domain.operate.audit import AuditEntry
from perdure.errors import ArgumentError
from perdure.operate.desk import Desk
from perdure.operate.records import AuditPage
from perdure.surfaces.cli import options
from perdure.surfaces.cli.session import with_desk
from perdure.surfaces.cli.terminal.hostile import one_line
from perdure.surfaces.cli.terminal.output import console, plain, print_json, say
from perdure.surfaces.cli.terminal.reading import read_json
from perdure.surfaces.cli.terminal.times import absolute, read_time

audit = typer.Typer(help="Read the audit trail, and add to it.", no_args_is_help=True)

_FILTER: Final = "Which entries"
Job = Annotated[str | None, typer.Option("--job", metavar="ID", help="About this job.", rich_help_panel=_FILTER)]
Actor = Annotated[str | None, typer.Option("--actor", help="Of this actor.", rich_help_panel=_FILTER)]
Action = Annotated[str | None, typer.Option("--action", help="Of this action.", rich_help_panel=_FILTER)]
Since = Annotated[
    str | None,
    typer.Option(
        "--since", metavar="TIME", help="From this time on, as -1h or 2026-03-01T09:00Z.", rich_help_panel=_FILTER
    ),
]
Until = Annotated[
    str | None, typer.Option("--until", metavar="TIME", help="Before this time.", rich_help_panel=_FILTER)
]
Limit = Annotated[int, typer.Option("--limit", help="At most so many.", rich_help_panel=_FILTER)]
Before = Annotated[
    int | None,
    typer.Option(
        "--before", metavar="NUMBER", help="Go on with the entries older than this one.", rich_help_panel=_FILTER
    ),
]
Word = Annotated[str, typer.Argument(metavar="ACTION", help="What was done, in a word.", show_default=False)]
Details = Annotated[str | None, typer.Option("--details", metavar="JSON", help="More about it: a JSON object.")]


@audit.command("list")
def list_entries(
    *,
    url: options.Url = None,
    job: Job = None,
    actor: Actor = None,
    action: Action = None,
    since: Since = None,
    until: Until = None,
    limit: Limit = 20,
    before: Before = None,
    as_json: options.Json = False,
) -> None:
    """List entries, newest first."""

    async def look(desk: Desk) -> AuditPage:
        now = await desk.now()
        return await desk.audit(
            job=job,
            actor=actor,
            action=action,
            since=_moment("--since", since, now),
            until=_moment("--until", until, now),
            limit=limit,
            before=before,
        )

    page = with_desk(url, look)
    if as_json:
        print_json({"entries": [_document(entry) for entry in page.entries], "next": page.next})
        return
    for entry in page.entries:
        _show(entry)
    if not page.entries:
        say("No entries.", "dim")
    if page.next is not None:
        say(f"More: --before {page.next}", "dim")


@audit.command("add")
def add(
    action: Word,
    *,
    url: options.Url = None,
    job: Annotated[str | None, typer.Option("--job", metavar="ID", help="The job that it is about.")] = None,
    details: Details = None,
    as_json: options.Json = False,
) -> None:
    """Add an entry under your name."""
    given = None if details is None else read_json("--details", details)
    if given is not None and not isinstance(given, dict):
        raise ArgumentError("--details", "must be a JSON object, as '{\"ticket\": 42}'")
    entry = with_desk(url, lambda desk: desk.record(action, job=job, details=given))
    if as_json:
        print_json(_document(entry))
    else:
        _show(entry)


def _moment(option: str, text: str | None, now: datetime) -> datetime | None:
    return None if text is None else read_time(option, text).when(now)


def _show(entry: AuditEntry) -> None:
    details = "  ".join(f"{one_line(name)}={one_line(str(value))}" for name, value in entry.details.items())
    head = (absolute(entry.at), "dim"), "  ", (one_line(entry.action), "bold"), f"  {one_line(entry.actor)}"
    about = f"  {entry.job_id}" if entry.job_id else ""
    console().print(Text.assemble(*head, about, (f"  {details}" if details else "", "dim")), soft_wrap=True)


def _document(entry: AuditEntry) -> dict[str, Any]:
    return {**plain(entry), "actor_type": entry.actor_type.value}

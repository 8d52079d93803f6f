"""`perdure audit`: who did what."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Final

import typer

from perdure.domain.operate.audit import AuditEntry
from perdure.errors import ArgumentError
from perdure.operate.desk import Desk
from perdure.operate.records import AuditPage
from perdure.surfaces.cli import options
from perdure.surfaces.cli.database.audit_table import show_entries
from perdure.surfaces.cli.session import with_desk
from perdure.surfaces.cli.terminal.output import plain, print_json, say
from perdure.surfaces.cli.terminal.reading import read_json
from perdure.surfaces.cli.terminal.times import read_time

audit = typer.Typer(help="Read the audit trail, and add to it.", no_args_is_help=True)

_FILTER: Final = "Which entries"
Job = Annotated[str | None, typer.Option("--job", metavar="ID", help="About this job.", rich_help_panel=_FILTER)]
Actor = Annotated[str | None, typer.Option("--actor", help="Of this actor.", rich_help_panel=_FILTER)]
Action = Annotated[str | None, typer.Option("--action", help="Of this action.", rich_help_panel=_FILTER)]
Source = Annotated[
    str | None,
    typer.Option(
        "--source", metavar="TEXT", help="From this surface, as cli or desk, or its address.", rich_help_panel=_FILTER
    ),
]
Bulk = Annotated[
    str | None, typer.Option("--bulk", metavar="ID", help="Of this bulk command.", rich_help_panel=_FILTER)
]
Since = Annotated[
    str | None,
    typer.Option(
        "--since", metavar="TIME", help="From this time on: -1h or 2026-03-01T09:00Z.", rich_help_panel=_FILTER
    ),
]
Until = Annotated[
    str | None, typer.Option("--until", metavar="TIME", help="Before this time.", rich_help_panel=_FILTER)
]
Limit = Annotated[int, typer.Option("--limit", help="At most this many entries.", rich_help_panel=_FILTER)]
Before = Annotated[
    int | None,
    typer.Option(
        "--before", metavar="NUMBER", help="Continue with entries older than this one.", rich_help_panel=_FILTER
    ),
]
Word = Annotated[str, typer.Argument(metavar="ACTION", help="A word for what was done.", show_default=False)]
Details = Annotated[str | None, typer.Option("--details", metavar="JSON", help="More about it: a JSON object.")]


@audit.command("list")
def list_entries(
    *,
    url: options.Url = None,
    job: Job = None,
    actor: Actor = None,
    action: Action = None,
    source: Source = None,
    bulk: Bulk = None,
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
            source=source,
            bulk=bulk,
            since=_moment("--since", since, now),
            until=_moment("--until", until, now),
            limit=limit,
            before=before,
        )

    page = with_desk(url, look)
    if as_json:
        print_json({"entries": [_document(entry) for entry in page.entries], "next": page.next})
        return
    if page.entries:
        show_entries(page.entries)
    else:
        say("No entries.", "dim")
    if page.next is not None:
        say(f"More: --before {page.next}", "dim")


@audit.command("add")
def add(
    action: Word,
    *,
    url: options.Url = None,
    job: Annotated[str | None, typer.Option("--job", metavar="ID", help="The job that the entry is about.")] = None,
    details: Details = None,
    why: options.Why = None,
    as_json: options.Json = False,
) -> None:
    """Add an entry under your name."""
    given = None if details is None else read_json("--details", details)
    if given is not None and not isinstance(given, dict):
        raise ArgumentError("--details", "must be a JSON object, as '{\"ticket\": 42}'")
    entry = with_desk(url, lambda desk: desk.record(action, job=job, details=given, why=why))
    if as_json:
        print_json(_document(entry))
    else:
        show_entries([entry])


def _moment(option: str, text: str | None, now: datetime) -> datetime | None:
    return None if text is None else read_time(option, text).when(now)


def _document(entry: AuditEntry) -> dict[str, Any]:
    return {**plain(entry), "actor_type": entry.actor_type.value}

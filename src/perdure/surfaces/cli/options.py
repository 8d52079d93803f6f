"""The options that several commands share, each declared once."""

from __future__ import annotations

from typing import Annotated, Final

import typer

from perdure.surfaces.cli.completion import (
    complete_group,
    complete_id,
    complete_kind,
    complete_queue,
    complete_search,
    complete_state,
)

_DATABASE: Final = "Database"
_FILTER: Final = "Which jobs"
_CARE: Final = "Care"

Url = Annotated[
    str | None,
    typer.Option(
        "--url",
        envvar="PERDURE_URL",
        help="The database: sqlite:///file.db or postgresql://…",
        show_default="sqlite:///perdure.db",
        rich_help_panel=_DATABASE,
    ),
]
Json = Annotated[bool, typer.Option("--json", help="One JSON document on standard output; errors as JSON too.")]
JobId = Annotated[
    str,
    typer.Argument(metavar="ID", help="The id of the job, or its ref.", show_default=False, autocompletion=complete_id),
]
JobIds = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="ID",
        help="Ids or refs of jobs; or choose by options.",
        show_default=False,
        autocompletion=complete_id,
    ),
]
States = Annotated[
    list[str] | None,
    typer.Option(
        "--state",
        metavar="STATE",
        help="In this state, or the app's word for it; repeatable.",
        rich_help_panel=_FILTER,
        autocompletion=complete_state,
    ),
]
KindName = Annotated[
    str | None, typer.Option("--kind", help="Of this kind.", rich_help_panel=_FILTER, autocompletion=complete_kind)
]
QueueName = Annotated[
    str | None, typer.Option("--queue", help="In this queue.", rich_help_panel=_FILTER, autocompletion=complete_queue)
]
Tag = Annotated[str | None, typer.Option("--tag", help="With this tag.", rich_help_panel=_FILTER)]
ErrorText = Annotated[
    str | None,
    typer.Option("--error", help="Last error contains this text, ignoring case.", rich_help_panel=_FILTER),
]
Search = Annotated[
    str | None,
    typer.Option(
        "--search",
        metavar="SEARCH",
        help="As typed on the desk: 'kind:mail state:dead args.user.id=42 error~timeout since:1h'.",
        rich_help_panel=_FILTER,
        autocompletion=complete_search,
    ),
]
Where = Annotated[
    list[str] | None,
    typer.Option(
        "--where",
        metavar="CONDITION",
        help="As args.user.id=42, meta.tenant~acme, result.sum>3, error.type!=E, tags=eu, or args.user for any value; "
        "may be given several times.",
        rich_help_panel=_FILTER,
    ),
]
Group = Annotated[
    str | None,
    typer.Option(
        "--group",
        metavar="FINGERPRINT",
        help="Last error is in this group: see `perdure dead groups`.",
        rich_help_panel=_FILTER,
        autocompletion=complete_group,
    ),
]
CreatedBefore = Annotated[
    str | None,
    typer.Option("--older-than", metavar="SPAN", help="Created longer ago than 90s, 2h, 7d.", rich_help_panel=_FILTER),
]
DiedBefore = Annotated[
    str | None,
    typer.Option("--older-than", metavar="SPAN", help="Dead for longer than 90s, 2h, 7d.", rich_help_panel=_FILTER),
]
Parent = Annotated[
    str | None,
    typer.Option(
        "--parent", metavar="ID", help="Children of this job.", rich_help_panel=_FILTER, autocompletion=complete_id
    ),
]
FinishedAfter = Annotated[
    str | None,
    typer.Option(
        "--finished-after", metavar="TIME", help="Finished after, as -1h or 2026-03-01T09:00Z.", rich_help_panel=_FILTER
    ),
]
FinishedBefore = Annotated[
    str | None,
    typer.Option(
        "--finished-before",
        metavar="TIME",
        help="Finished before, as -7d or 2026-03-01T09:00Z.",
        rich_help_panel=_FILTER,
    ),
]
Mark = Annotated[str | None, typer.Option("--mark", help="With this mark.", rich_help_panel=_FILTER)]
Unmarked = Annotated[bool, typer.Option("--unmarked", help="Without a mark.", rich_help_panel=_FILTER)]
PageNumber = Annotated[
    int | None,
    typer.Option("--page", metavar="N", help="The Nth page of --limit jobs.", rich_help_panel=_FILTER),
]
PageLimit = Annotated[int, typer.Option("--limit", help="At most this many.", rich_help_panel=_FILTER)]
Before = Annotated[
    str | None,
    typer.Option(
        "--before",
        metavar="ID",
        help="Continue with jobs older than this one.",
        rich_help_panel=_FILTER,
        autocompletion=complete_id,
    ),
]
CommandLimit = Annotated[
    int | None, typer.Option("--limit", help="At most this many, newest first.", rich_help_panel=_FILTER)
]
All = Annotated[bool, typer.Option("--all", help="All jobs that the command can change.", rich_help_panel=_FILTER)]
Why = Annotated[
    str | None,
    typer.Option("--why", metavar="TEXT", help="The reason, for the audit trail.", rich_help_panel=_CARE),
]
Detach = Annotated[bool, typer.Option("--detach", help="Return at once; workers do the work.", rich_help_panel=_CARE)]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.", rich_help_panel=_CARE)]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only show what would happen.", rich_help_panel=_CARE)]
Lines = Annotated[int, typer.Option("--lines", metavar="N", help="Show this many of its newest log lines.")]
Traceback = Annotated[bool, typer.Option("--traceback", help="With the traceback of every attempt.")]

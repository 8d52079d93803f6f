"""The options that several commands share, each declared once."""

from __future__ import annotations

from typing import Annotated, Final

import typer

from perdure.surfaces.cli.completion import complete_id, complete_kind, complete_queue

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
        help="Ids or refs of jobs; or say which by options.",
        show_default=False,
        autocompletion=complete_id,
    ),
]
States = Annotated[
    list[str] | None,
    typer.Option(
        "--state",
        metavar="STATE",
        help="In this state, or in what the app calls so; may be given several times.",
        rich_help_panel=_FILTER,
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
    typer.Option("--error", help="Whose last error holds this text, in any case.", rich_help_panel=_FILTER),
]
CreatedBefore = Annotated[
    str | None,
    typer.Option("--older-than", metavar="SPAN", help="Made longer ago than, as 90s, 2h, 7d.", rich_help_panel=_FILTER),
]
DiedBefore = Annotated[
    str | None,
    typer.Option("--older-than", metavar="SPAN", help="Dead for longer than, as 90s, 2h, 7d.", rich_help_panel=_FILTER),
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
PageLimit = Annotated[int, typer.Option("--limit", help="At most so many.", rich_help_panel=_FILTER)]
Before = Annotated[
    str | None,
    typer.Option("--before", metavar="ID", help="Go on with the jobs older than this one.", rich_help_panel=_FILTER),
]
CommandLimit = Annotated[int, typer.Option("--limit", help="At most so many, newest first.", rich_help_panel=_FILTER)]
All = Annotated[bool, typer.Option("--all", help="All jobs that this can be done to.", rich_help_panel=_FILTER)]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.", rich_help_panel=_CARE)]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only show what would happen.", rich_help_panel=_CARE)]
Lines = Annotated[int, typer.Option("--lines", metavar="N", help="So many of its newest log lines.")]
Traceback = Annotated[bool, typer.Option("--traceback", help="With the traceback of every attempt.")]

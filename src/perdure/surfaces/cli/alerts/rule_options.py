"""The options that make a rule."""

from __future__ import annotations

from typing import Annotated, Final

import typer

from perdure.domain.alerts.rule import AlertSeverity, Grouping, When
from perdure.surfaces.cli.completion import complete_channel, complete_kind, complete_queue, complete_rule

_CAUSE: Final = "What"
_TELL: Final = "Notices"

Name = Annotated[
    str, typer.Argument(metavar="NAME", help="The rule's name.", show_default=False, autocompletion=complete_rule)
]
WhenWord = Annotated[
    str, typer.Option("--when", metavar="WHEN", help=f"One of {', '.join(When)}.", rich_help_panel=_CAUSE)
]
To = Annotated[
    list[str],
    typer.Option(
        "--to",
        metavar="CHANNEL",
        help="A channel; repeatable.",
        rich_help_panel=_TELL,
        autocompletion=complete_channel,
    ),
]
QueueName = Annotated[
    str | None, typer.Option("--queue", help="Only this queue.", rich_help_panel=_CAUSE, autocompletion=complete_queue)
]
KindName = Annotated[
    str | None, typer.Option("--kind", help="Only this kind.", rich_help_panel=_CAUSE, autocompletion=complete_kind)
]
About = Annotated[
    str | None,
    typer.Option(
        "--about", metavar="NAME", help="Only this schedule, budget, breaker or worker.", rich_help_panel=_CAUSE
    ),
]
Limit = Annotated[
    str | None,
    typer.Option("--limit", metavar="LIMIT", help="Jobs, a time as 5m, or a share as 20%.", rich_help_panel=_CAUSE),
]
Within = Annotated[
    str | None,
    typer.Option("--within", metavar="SPAN", help="How far back to look, as 5m.", rich_help_panel=_CAUSE),
]
Lasting = Annotated[
    str, typer.Option("--lasting", metavar="SPAN", help="Only if it lasts this long.", rich_help_panel=_CAUSE)
]
Least = Annotated[int | None, typer.Option("--least", help="Ignore a share of fewer attempts.", rich_help_panel=_CAUSE)]
Severity = Annotated[AlertSeverity, typer.Option("--severity", help="How bad it is.", rich_help_panel=_TELL)]
Throttle = Annotated[
    str, typer.Option("--throttle", metavar="SPAN", help="Time between notices of one cause.", rich_help_panel=_TELL)
]
Group = Annotated[
    Grouping,
    typer.Option("--group", help="One notice for each cause, or one for the whole rule.", rich_help_panel=_TELL),
]
Quiet = Annotated[
    list[str] | None,
    typer.Option(
        "--quiet",
        metavar="HOURS",
        help='Hold notices back, as "22:00-07:00 mon-fri Europe/Berlin"; repeatable.',
        rich_help_panel=_TELL,
    ),
]
NoRecovery = Annotated[bool, typer.Option("--no-recovery", help="Send no notice at its end.", rich_help_panel=_TELL)]

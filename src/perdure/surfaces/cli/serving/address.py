"""The address of the desk: the options of `perdure desk` and `perdure up`, and the line that they print."""

from __future__ import annotations

import sys
from typing import Annotated, Final

import structlog
import typer
from rich.text import Text

from perdure.surfaces.cli.terminal.output import console

_DESK: Final = "Desk"

Host = Annotated[str, typer.Option("--host", help="The address to listen on.", rich_help_panel=_DESK)]
Port = Annotated[
    int | None,
    typer.Option(
        "--port",
        help="The port to listen on; 0 picks a free one.",
        show_default="8484, or the next one that is free",
        rich_help_panel=_DESK,
    ),
]
Prefix = Annotated[
    str, typer.Option("--prefix", metavar="PATH", help="Serve the desk below this path.", rich_help_panel=_DESK)
]
ReadOnly = Annotated[
    bool, typer.Option("--read-only", help="Refuse every change; works on a standby too.", rich_help_panel=_DESK)
]


def tell_address(address: str, *, pretty: bool) -> None:
    """Print the address of the desk for people, or log it in one line for a machine."""
    if pretty:
        console(sys.stderr).print(Text.assemble("desk  ", (address, "bold underline")), soft_wrap=True)
    else:
        structlog.stdlib.get_logger("perdure").info("desk opened", address=address)

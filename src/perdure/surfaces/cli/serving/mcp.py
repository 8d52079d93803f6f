"""`perdure mcp`: the desk for agents, over stdin and stdout."""

from __future__ import annotations

import asyncio
import sys
from contextlib import redirect_stdout
from enum import StrEnum
from typing import Annotated, Final

import typer

from perdure.surfaces.cli import options
from perdure.surfaces.cli.loading import load_app
from perdure.surfaces.cli.project import database_url
from perdure.surfaces.cli.workers.logs import LogFormat, LogLevel, set_up_logging
from perdure.surfaces.mcp.extra import missing_mcp
from perdure.surfaces.mcp.settings import McpSettings

_JOBS: Final = McpSettings().jobs_per_call


class Agents(StrEnum):
    """What agents may do at the desk."""

    READ = "read"
    COMMANDS = "commands"

    @property
    def settings(self) -> McpSettings:
        """The settings for this word."""
        return McpSettings(commands=self is Agents.COMMANDS)


Mcp = Annotated[
    Agents | None,
    typer.Option(
        "--mcp",
        envvar="PERDURE_DESK_MCP",
        help="Serve agents at /mcp: read-only, or with commands that a token's scope allows.",
        rich_help_panel="Desk",
    ),
]
AppName = Annotated[
    str | None,
    typer.Argument(metavar="APP", help="module:app, to preview retries too; or give --url.", show_default=False),
]
AllowCommands = Annotated[
    bool, typer.Option("--allow-commands", help="Offer commands: requeue, cancel, pause and others.")
]
JobsPerCall = Annotated[int, typer.Option("--jobs-per-call", help="How many jobs one call may touch.")]


def mcp(
    app: AppName = None,
    *,
    url: options.Url = None,
    allow_commands: AllowCommands = False,
    jobs_per_call: JobsPerCall = _JOBS,
) -> None:
    """Serve agents over stdin and stdout (Model Context Protocol).

    An agent's client starts this. Without --allow-commands it only reads.

    Give an app or --url, not both: an app has its own database. Needs the extra: pip install 'perdure[mcp]'.
    """
    settings = McpSettings(commands=allow_commands, jobs_per_call=jobs_per_call)
    set_up_logging(LogFormat.JSON, LogLevel.WARNING)  # to stderr: stdout belongs to the client
    try:
        from perdure.surfaces.mcp.stdio import serve_stdio  # noqa: PLC0415 - an extra, and slow to load
    except ModuleNotFoundError as error:
        raise missing_mcp(error) from None
    with redirect_stdout(sys.stderr):  # output of the app's modules
        source = database_url(url) if app is None else load_app(app)
    asyncio.run(serve_stdio(source, settings))

"""The complete command line. A command is imported only if it is called, or if all are listed."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from importlib import import_module
from typing import Annotated, Final

import typer

from perdure.surfaces.cli import options
from perdure.surfaces.cli.exits import MEANING
from perdure.surfaces.cli.group import Perdure
from perdure.surfaces.cli.terminal.output import print_json, say
from perdure.version import __version__

_EXIT_CODES: Final = "Exit codes: " + ", ".join(f"{code:d} {meaning}" for code, meaning in MEANING.items()) + "."
_PACKAGE: Final = "perdure.surfaces.cli"
_DATABASE: Final = "Database and access"
_WHERE: Final = {  # in the order of the help: module and name of each command or group
    "Run (needs your code)": {
        "up": "serving.up:up",
        "worker": "workers.worker:worker",
        "enqueue": "jobs.enqueue:enqueue",
        "preview": "jobs.preview:show_preview",
    },
    "Look (these and all below need only PERDURE_URL or --url)": {
        "desk": "serving.desk:desk",
        "top": "top:top",
        "attention": "database.attention:attention",
        "stats": "database.stats:stats",
        "workers": "workers.quiet:workers",
        "doctor": "database.doctor:doctor",
        "mcp": "serving.mcp:mcp",
    },
    "Jobs": {
        "jobs": "jobs.jobs:jobs",
        "dead": "jobs.dead:dead",
        "bulk": "bulk.bulk:bulk",
        "approvals": "questions.approvals:approvals",
        "approve": "questions.approvals:approve",
        "emit": "questions.emit:emit",
        "audit": "database.audit:audit",
    },
    "Schedules, pauses and gates": {
        "schedules": "schedules.schedules:schedules",
        "pauses": "holds.pauses:pauses",
        "pause": "holds.pauses:pause",
        "resume": "holds.pauses:resume",
        "quiet": "workers.quiet:quiet",
        "breakers": "holds.breakers:breakers",
        "spent": "holds.breakers:spent",
    },
    "Notify people and programs": {
        "alerts": "alerts.alerts:alerts",
        "webhooks": "outlets.webhooks:webhooks",
        "events": "outlets.events:events",
        "metrics": "metrics:metrics",
    },
    _DATABASE: {
        "migrate": "database.migrate:migrate",
        "backup": "database.backup:backup",
        "token": "database.tokens:token",
    },
}


class InOrder(Perdure):
    """Lists commands and groups of commands in one order, that of the table."""

    def list_commands(self, ctx: typer.Context) -> list[str]:  # type: ignore[override]
        """The names of the commands."""
        del ctx
        names = [name for commands in _WHERE.values() for name in commands]
        return [name for name in (*names, "version") if name in self.commands]


def command_line(words: Sequence[str] = ()) -> typer.Typer:
    """The command line for these words: with the one command that they call, or with all if they call none."""
    perdure = typer.Typer(
        name="perdure",
        cls=InOrder,
        epilog=_EXIT_CODES,
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    perdure.callback()(_before_any_command)
    called = words[0] if words else ""
    alone = any(called in commands for commands in _WHERE.values())
    for panel, commands in _WHERE.items():
        for name, where in commands.items():
            if name == called or not alone:
                _add(perdure, name, where, panel)
    perdure.command("version", rich_help_panel=_DATABASE)(version)
    return perdure


def _add(perdure: typer.Typer, name: str, where: str, panel: str) -> None:
    module, _, attribute = where.partition(":")
    found = getattr(import_module(f"{_PACKAGE}.{module}"), attribute)
    if isinstance(found, typer.Typer):
        perdure.add_typer(found, name=name, rich_help_panel=panel)
    else:
        perdure.command(name, rich_help_panel=panel)(found)


def version(as_json: options.Json = False) -> None:
    """Print the versions of perdure and Python."""
    if as_json:
        print_json({"perdure": __version__, "python": platform.python_version()})
    else:
        say(f"perdure {__version__} on Python {platform.python_version()}")


def _print_version(asked: bool) -> None:
    if asked:
        version()
        raise typer.Exit


def _before_any_command(
    _: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_print_version, help="Print the version and exit.")
    ] = False,
) -> None:
    """Durable jobs for Python, on SQLite and PostgreSQL."""

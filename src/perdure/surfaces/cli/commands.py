"""The whole command line, put together."""

from __future__ import annotations

import platform
from typing import Annotated, Final

import typer

from perdure.surfaces.cli import options
from perdure.surfaces.cli.database.audit import audit
from perdure.surfaces.cli.database.backup import backup
from perdure.surfaces.cli.database.doctor import doctor
from perdure.surfaces.cli.database.migrate import migrate
from perdure.surfaces.cli.database.stats import stats
from perdure.surfaces.cli.dead import dead
from perdure.surfaces.cli.exits import MEANING
from perdure.surfaces.cli.group import Perdure
from perdure.surfaces.cli.holds.breakers import breakers, spent
from perdure.surfaces.cli.holds.pauses import pause, pauses, resume
from perdure.surfaces.cli.jobs.enqueue import enqueue
from perdure.surfaces.cli.jobs.jobs import jobs
from perdure.surfaces.cli.jobs.preview import show_preview
from perdure.surfaces.cli.questions.approvals import approvals, approve
from perdure.surfaces.cli.questions.emit import emit
from perdure.surfaces.cli.schedules.schedules import schedules
from perdure.surfaces.cli.terminal.output import print_json, say
from perdure.surfaces.cli.workers.quiet import quiet, workers
from perdure.surfaces.cli.workers.worker import up, worker
from perdure.version import __version__

_RUN: Final = "Run (needs your code)"
_OPERATE: Final = "Operate (needs only PERDURE_URL or --url)"
_EXIT_CODES: Final = "Exit codes: " + ", ".join(f"{code:d} {meaning}" for code, meaning in MEANING.items()) + "."

perdure = typer.Typer(
    name="perdure",
    cls=Perdure,
    epilog=_EXIT_CODES,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
perdure.command("up", rich_help_panel=_RUN)(up)
perdure.command("worker", rich_help_panel=_RUN)(worker)
perdure.command("enqueue", rich_help_panel=_RUN)(enqueue)
perdure.command("preview", rich_help_panel=_RUN)(show_preview)
perdure.add_typer(jobs, name="jobs", rich_help_panel=_OPERATE)
perdure.command("stats", rich_help_panel=_OPERATE)(stats)
perdure.add_typer(dead, name="dead", rich_help_panel=_OPERATE)
perdure.add_typer(audit, name="audit", rich_help_panel=_OPERATE)
perdure.add_typer(schedules, name="schedules", rich_help_panel=_OPERATE)
perdure.command("emit", rich_help_panel=_OPERATE)(emit)
perdure.command("approvals", rich_help_panel=_OPERATE)(approvals)
perdure.command("approve", rich_help_panel=_OPERATE)(approve)
perdure.command("pauses", rich_help_panel=_OPERATE)(pauses)
perdure.command("pause", rich_help_panel=_OPERATE)(pause)
perdure.command("resume", rich_help_panel=_OPERATE)(resume)
perdure.add_typer(breakers, name="breakers", rich_help_panel=_OPERATE)
perdure.command("spent", rich_help_panel=_OPERATE)(spent)
perdure.command("workers", rich_help_panel=_OPERATE)(workers)
perdure.command("quiet", rich_help_panel=_OPERATE)(quiet)
perdure.command("backup", rich_help_panel=_OPERATE)(backup)
perdure.command("migrate", rich_help_panel=_OPERATE)(migrate)
perdure.command("doctor", rich_help_panel=_OPERATE)(doctor)


@perdure.command("version", rich_help_panel=_OPERATE)
def version(as_json: options.Json = False) -> None:
    """Tell the version of perdure and of Python."""
    if as_json:
        print_json({"perdure": __version__, "python": platform.python_version()})
    else:
        say(f"perdure {__version__} on Python {platform.python_version()}")


def _tell_version(asked: bool) -> None:
    if asked:
        version()
        raise typer.Exit


@perdure.callback()
def _before_any_command(
    _: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_tell_version, help="Tell the version and exit.")
    ] = False,
) -> None:
    """Durable jobs for Python, on SQLite and PostgreSQL."""

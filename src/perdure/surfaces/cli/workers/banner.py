"""The lines that a worker prints when it starts: version, database, kinds, schedules and queues."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

import structlog
from rich.table import Table
from rich.text import Text

from perdure.app.app import App
from perdure.policy.secrets.passwords import without_password
from perdure.surfaces.cli.project import URL_VARIABLE, project
from perdure.surfaces.cli.terminal.hostile import one_line
from perdure.surfaces.cli.terminal.output import console
from perdure.version import __version__
from perdure.worker.settings import WorkerSettings

_NAMES_SHOWN: Final = 8  # kinds and schedules by name, the others by number


def greet(app: App, settings: WorkerSettings, *, pretty: bool) -> None:
    """Print a block for people to standard error, or one log line for a machine; then the warnings."""
    queues = [queue.name for queue in settings.queues]
    if pretty:
        _show(app, settings, queues)
    else:
        structlog.stdlib.get_logger("perdure").info(
            "worker starts",
            version=__version__,
            database=without_password(app.url),
            queues=queues,
            kinds=sorted(app.kinds),
            schedules=sorted(app.schedules),
            periodic=sorted(app.periodic),
            concurrency=settings.concurrency,
        )
    _warn(app, queues)


def _show(app: App, settings: WorkerSettings, queues: Sequence[str]) -> None:
    out = console(sys.stderr)
    out.print(Text.assemble((f"perdure {__version__}", "bold"), "  Ctrl-C stops it; no job loses an attempt."))
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    table.add_row("database", one_line(without_password(app.url), 500))
    table.add_row("queues", _named(queues))
    table.add_row("kinds", _named(sorted(app.kinds)) or "none: no job is declared")
    if app.schedules:
        table.add_row("schedules", _named([f"{each.name} ({each.expression})" for each in app.schedules.values()]))
    if app.periodic:
        table.add_row("periodic", _named(sorted(app.periodic)))
    table.add_row("concurrency", f"{settings.concurrency} jobs, {settings.threads} of them in threads")
    out.print(table)
    out.print()


def _named(names: Sequence[str]) -> str:
    shown = ", ".join(one_line(name) for name in names[:_NAMES_SHOWN])
    return f"{shown} and {len(names) - _NAMES_SHOWN} more" if len(names) > _NAMES_SHOWN else shown


def _warn(app: App, queues: Sequence[str]) -> None:
    log = structlog.stdlib.get_logger("perdure")
    if not app.kinds and not app.periodic:
        log.warning("this app declares no jobs: import the modules that declare them, with include=")
    unserved: dict[str, list[str]] = {}
    for kind in app.kinds.values():
        if kind.queue not in queues:
            unserved.setdefault(kind.queue, []).append(kind.name)
    for queue, kinds in sorted(unserved.items()):
        log.warning("this worker does not serve the queue of some of its kinds", queue=queue, kinds=kinds)
    for doubt, facts in doubts_about_database(app):
        log.warning(doubt, **facts)


def doubts_about_database(app: App) -> list[tuple[str, dict[str, str]]]:
    """Reasons to doubt that the app uses the intended database, each with its facts."""
    doubts = []
    named = os.environ.get(URL_VARIABLE) or project().url
    if named is not None and _place(named) != _place(app.url):
        doubts.append(
            (
                "the app uses another database than commands without --url",
                {"app": without_password(app.url), "commands": without_password(named)},
            )
        )
    if (file := _missing_file(app.url)) is not None:
        doubts.append(("a new, empty database file is made: is this the right folder?", {"file": str(file)}))
    return doubts


def _place(url: str) -> tuple[object, ...]:
    """The location of a database, independent of options."""
    parts = urlsplit(url)
    if parts.scheme == "sqlite":
        return ("sqlite", Path(unquote(parts.path[1:])).absolute())
    return ("postgresql", parts.hostname, parts.port, parts.path)


def _missing_file(url: str) -> Path | None:
    parts = urlsplit(url)
    if parts.scheme != "sqlite":
        return None
    file = Path(unquote(parts.path[1:])).absolute()
    return None if file.exists() else file

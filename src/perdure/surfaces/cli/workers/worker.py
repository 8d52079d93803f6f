"""`perdure worker`: run jobs."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Final, NoReturn

import typer
from msgspec import Struct
from msgspec.structs import replace

from perdure.app.app import App
from perdure.domain.duration import format_duration, parse_duration
from perdure.errors import ArgumentError
from perdure.events.log import AttemptLog
from perdure.lifecycle.process.reloading import follow_reloader, is_reloaded, run_reloading
from perdure.lifecycle.process.supervisor import is_supervised, supervise
from perdure.surfaces.cli.loading import load_app
from perdure.surfaces.cli.project import project
from perdure.surfaces.cli.workers.banner import greet
from perdure.surfaces.cli.workers.logs import (
    LOG_PANEL,
    AttemptLines,
    Format,
    JsonLog,
    Level,
    LogFormat,
    LogLevel,
    set_up_logging,
)
from perdure.surfaces.cli.workers.metrics import MetricsCluster, MetricsHost, MetricsPort, metrics_beside
from perdure.surfaces.cli.workers.running import Beside, run_worker
from perdure.worker.settings import Queue, WorkerSettings, parse_queues

_CAPACITY: Final = "Capacity"
_LEASES: Final = "Life and death"
_DEFAULTS: Final = WorkerSettings()
LINES_A_SECOND: Final = 50
_STOP_MARGIN: Final = timedelta(seconds=10)  # for the database, in addition to the stop timeout

AppName = Annotated[
    str | None,
    typer.Argument(
        metavar="APP",
        envvar="PERDURE_APP",
        help="module:app, as jobs:app for `app` in jobs.py, or a function that makes one.",
        show_default="app in [tool.perdure]",
    ),
]
Queues = Annotated[
    str | None,
    typer.Option(
        help="Queues, with weight after a colon and limit after an at sign: mail:3,reports@2.",
        show_default="every queue that the app's kinds use",
        rich_help_panel=_CAPACITY,
    ),
]
Concurrency = Annotated[
    int | None,
    typer.Option(
        help="The most jobs at once, of all kinds together.",
        show_default=str(_DEFAULTS.concurrency),
        rich_help_panel=_CAPACITY,
    ),
]
Threads = Annotated[
    int | None,
    typer.Option(
        help="Threads for handlers that are not async.",
        show_default=str(_DEFAULTS.threads),
        rich_help_panel=_CAPACITY,
    ),
]
Processes = Annotated[int, typer.Option(min=1, help="Worker processes on this machine.", rich_help_panel=_CAPACITY)]
SlowStart = Annotated[
    str | None,
    typer.Option(
        metavar="SPAN",
        help="Ramp up from 1 job to --concurrency over this time.",
        show_default=format_duration(_DEFAULTS.slow_start),
        rich_help_panel=_CAPACITY,
    ),
]
RecycleAfter = Annotated[
    int | None,
    typer.Option("--recycle-after-jobs", help="Start a new process after this many jobs.", rich_help_panel=_CAPACITY),
]
RecycleAbove = Annotated[
    int | None,
    typer.Option("--recycle-above-mb", help="Start a new process above this much memory.", rich_help_panel=_CAPACITY),
]
StopTimeout = Annotated[
    str | None,
    typer.Option(
        metavar="SPAN",
        help="How long running jobs may continue after SIGTERM.",
        show_default=format_duration(_DEFAULTS.stop_timeout),
        rich_help_panel=_LEASES,
    ),
]
Lease = Annotated[
    str | None,
    typer.Option(
        metavar="SPAN",
        help="Without a heartbeat for this long, a worker is dead.",
        show_default=format_duration(_DEFAULTS.lease),
        rich_help_panel=_LEASES,
    ),
]
Heartbeat = Annotated[
    str | None,
    typer.Option(
        metavar="SPAN",
        help="How often a worker sends a heartbeat.",
        show_default=format_duration(_DEFAULTS.heartbeat),
        rich_help_panel=_LEASES,
    ),
]
Name = Annotated[str | None, typer.Option(help="The worker's name.", show_default="host:pid", rich_help_panel=_LEASES)]
NoMigrate = Annotated[
    bool, typer.Option("--no-migrate", help="Only check the schema, never change it.", rich_help_panel=_LEASES)
]
Attempts = Annotated[
    AttemptLines,
    typer.Option(
        "--log-attempts", help="Log each attempt that starts or succeeds, at this level.", rich_help_panel=LOG_PANEL
    ),
]
PerSecond = Annotated[
    int,
    typer.Option(
        "--log-attempts-per-second", min=1, help="At most this many of these lines.", rich_help_panel=LOG_PANEL
    ),
]
Reload = Annotated[
    bool, typer.Option("--reload", help="For development: restart when a Python file below this folder changes.")
]


class Logs(Struct, frozen=True):
    """The log options."""

    format: LogFormat | None
    level: LogLevel | None
    attempts: AttemptLog | None

    @classmethod
    def asked(
        cls,
        log_format: LogFormat | None,
        level: LogLevel | None,
        attempts: AttemptLines,
        per_second: int,
        *,
        as_json: bool,
    ) -> Logs:
        """The log settings from the options."""
        lines = None if attempts is AttemptLines.OFF else AttemptLog(attempts, per_second)
        return cls(LogFormat.JSON if as_json else log_format, level, lines)


def worker(
    app: AppName = None,
    *,
    queues: Queues = None,
    concurrency: Concurrency = None,
    threads: Threads = None,
    processes: Processes = 1,
    slow_start: SlowStart = None,
    recycle_after_jobs: RecycleAfter = None,
    recycle_above_mb: RecycleAbove = None,
    stop_timeout: StopTimeout = None,
    lease: Lease = None,
    heartbeat: Heartbeat = None,
    name: Name = None,
    no_migrate: NoMigrate = False,
    metrics_port: MetricsPort = None,
    metrics_host: MetricsHost = "127.0.0.1",
    metrics_cluster: MetricsCluster = False,
    log_format: Format = None,
    log_level: Level = None,
    log_attempts: Attempts = AttemptLines.INFO,
    log_attempts_per_second: PerSecond = LINES_A_SECOND,
    reload: Reload = False,
    as_json: JsonLog = False,
) -> None:
    """Run jobs until told to stop.

    SIGTERM or SIGINT lets running jobs finish within the stop timeout; a second one asks them to stop at once.

    SIGTSTP stops claiming and lets running jobs continue; SIGCONT claims again.

    Every worker also runs upkeep: it promotes due jobs, rescues jobs of dead workers and prunes old jobs.

    Omitted options use the app's WorkerSettings.
    """
    if reload and processes > 1:
        raise ArgumentError("--reload", "and --processes cannot be combined: --reload is for development")
    begin(reload=reload)
    loaded = load_app(app)
    overrides = {
        "name": _own_name(loaded.worker_settings.name if name is None else name, processes),
        "queues": queues_meant(queues),
        "concurrency": concurrency,
        "threads": threads,
        "recycle_after_jobs": recycle_after_jobs,
        "recycle_above_mb": recycle_above_mb,
        "slow_start": _span("--slow-start", slow_start),
        "stop_timeout": _span("--stop-timeout", stop_timeout),
        "lease": _span("--lease", lease),
        "heartbeat": _span("--heartbeat", heartbeat),
    }
    if no_migrate:
        loaded.keep_schema()
    logs = Logs.asked(log_format, log_level, log_attempts, log_attempts_per_second, as_json=as_json)
    beside = metrics_beside(loaded, metrics_host, metrics_port, cluster=metrics_cluster)
    work(loaded, overrides, logs, processes=processes, beside=beside)


def begin(*, reload: bool) -> None:
    """With `reload`, run this command line in a child process, and restart that on changes."""
    if reload and not is_reloaded():
        raise typer.Exit(run_reloading(sys.argv[1:], Path.cwd()))
    if reload:
        follow_reloader()


def work(
    app: App, overrides: Mapping[str, object], logs: Logs, *, processes: int = 1, beside: Beside | None = None
) -> NoReturn:
    """Run workers of the app with these settings, each replacing the app's own unless None, and exit."""
    is_pretty = set_up_logging(logs.format, logs.level)
    given = {field: value for field, value in overrides.items() if value is not None}
    settings = app.serving(replace(app.worker_settings, **given))
    if not is_supervised():
        greet(app, settings, pretty=is_pretty)
    if (processes > 1 or settings.recycles) and not is_supervised():
        stop_within = settings.stop_timeout + settings.grace + _STOP_MARGIN
        raise typer.Exit(supervise(sys.argv[1:], processes, stop_within=stop_within))
    raise typer.Exit(asyncio.run(run_worker(app, settings, logs.attempts, beside)))


def queues_meant(given: str | None) -> tuple[Queue, ...] | None:
    """The queues from the option, or from the project."""
    asked = given or project().queues
    return None if asked is None else parse_queues(asked)


def _span(option: str, text: str | None) -> timedelta | None:
    return None if text is None else parse_duration(option, text)


def _own_name(name: str | None, processes: int) -> str | None:
    """The name of this process: several processes with one name are distinguished by their pid."""
    return f"{name}:{os.getpid()}" if name and processes > 1 else name

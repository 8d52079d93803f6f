"""`perdure up`: worker, schedules and desk in one process."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Annotated

import structlog
import typer
from msgspec import Struct

from perdure.app.app import App
from perdure.errors import SettingsError
from perdure.surfaces.access.settings import AccessSettings
from perdure.surfaces.cli.loading import load_app
from perdure.surfaces.cli.serving.address import Host, Port, Prefix, ReadOnly, tell_address
from perdure.surfaces.cli.serving.mcp import Mcp
from perdure.surfaces.cli.workers.logs import AttemptLines, Format, JsonLog, Level
from perdure.surfaces.cli.workers.running import Beside
from perdure.surfaces.cli.workers.worker import (
    LINES_A_SECOND,
    AppName,
    Attempts,
    Concurrency,
    Logs,
    PerSecond,
    Queues,
    Reload,
    Threads,
    begin,
    queues_meant,
    work,
)
from perdure.surfaces.mcp.settings import McpSettings
from perdure.surfaces.server.extra import missing_web

if TYPE_CHECKING:
    from perdure.worker.worker import Worker

NoDesk = Annotated[bool, typer.Option("--no-desk", help="Only the worker.", rich_help_panel="Desk")]


def up(
    app: AppName = None,
    *,
    queues: Queues = None,
    concurrency: Concurrency = None,
    threads: Threads = None,
    host: Host = "127.0.0.1",
    port: Port = None,
    prefix: Prefix = "",
    read_only: ReadOnly = False,
    no_desk: NoDesk = False,
    mcp: Mcp = None,
    log_format: Format = None,
    log_level: Level = None,
    log_attempts: Attempts = AttemptLines.INFO,
    log_attempts_per_second: PerSecond = LINES_A_SECOND,
    reload: Reload = False,
    as_json: JsonLog = False,
) -> None:
    """Run worker, schedules and desk in one process.

    Prints the address of the desk. `perdure worker` and `perdure desk` run them separately, with more options.

    SIGTERM or SIGINT lets running jobs finish, then closes the desk.
    """
    begin(reload=reload)
    loaded = load_app(app)
    overrides = {"queues": queues_meant(queues), "concurrency": concurrency, "threads": threads}
    logs = Logs.asked(log_format, log_level, log_attempts, log_attempts_per_second, as_json=as_json)
    settings = None if mcp is None else mcp.settings
    place = Place(host, port, prefix)
    desk = None if no_desk else _desk_beside(loaded, place, settings, read_only=read_only, pretty=not as_json)
    work(loaded, overrides, logs, beside=desk)


class Place(Struct, frozen=True):
    """The address of the desk."""

    host: str
    port: int | None
    prefix: str


def _desk_beside(app: App, place: Place, mcp: McpSettings | None, *, read_only: bool, pretty: bool) -> Beside | None:
    """The desk as something that runs beside a worker; None: its packages are missing."""
    try:
        from perdure.surfaces.server.runner import address_of, listening, served  # noqa: PLC0415 - an extra
        from perdure.surfaces.server.site import Site  # noqa: PLC0415 - as above
    except ModuleNotFoundError as error:
        missing = missing_web(error)
        if not isinstance(missing, SettingsError):
            raise
        structlog.stdlib.get_logger("perdure").warning("no desk: %s", missing)
        return None

    @asynccontextmanager
    async def serve(worker: Worker) -> AsyncIterator[None]:
        site = Site(
            app,
            prefix=place.prefix,
            read_only=read_only,
            access=AccessSettings.from_env(),
            workers=[worker],
            mcp=mcp,
        )
        sock = listening(place.host, place.port)
        async with served(site, sock):
            tell_address(address_of(sock, site.prefix), pretty=pretty and sys.stderr.isatty())
            yield

    return serve

"""`perdure desk`: the web desk and the HTTP API of a database."""

from __future__ import annotations

import asyncio
import signal
import sys
import webbrowser
from typing import Annotated, Final

import typer

from perdure.surfaces.access.settings import AccessSettings
from perdure.surfaces.cli import options
from perdure.surfaces.cli.project import database_url
from perdure.surfaces.cli.serving.address import Host, Port, Prefix, ReadOnly, tell_address
from perdure.surfaces.cli.serving.mcp import Mcp
from perdure.surfaces.cli.workers.logs import Format, JsonLog, Level, LogFormat, set_up_logging
from perdure.surfaces.server.extra import missing_web

_STOPPING: Final = (signal.SIGTERM, signal.SIGINT)

NoOpen = Annotated[bool, typer.Option("--no-open", help="Do not open a browser.", rich_help_panel="Desk")]


def desk(
    *,
    host: Host = "127.0.0.1",
    port: Port = None,
    prefix: Prefix = "",
    read_only: ReadOnly = False,
    no_open: NoOpen = False,
    mcp: Mcp = None,
    url: options.Url = None,
    log_format: Format = None,
    log_level: Level = None,
    as_json: JsonLog = False,
) -> None:
    """Serve the web desk and the HTTP API of a database.

    The app's code is not needed, so jobs cannot be enqueued here. SIGTERM and SIGINT stop it.
    """
    is_pretty = set_up_logging(LogFormat.JSON if as_json else log_format, log_level)
    try:
        from perdure.surfaces.server.runner import address_of, listening, served  # noqa: PLC0415 - an extra
        from perdure.surfaces.server.site import Site  # noqa: PLC0415 - as above
    except ModuleNotFoundError as error:
        raise missing_web(error) from None

    async def serve() -> None:
        site = Site(
            database_url(url),
            prefix=prefix,
            read_only=read_only,
            access=AccessSettings.from_env(),
            mcp=None if mcp is None else mcp.settings,
        )
        sock = listening(host, port)
        stopping = asyncio.Event()
        for number in _STOPPING:
            asyncio.get_running_loop().add_signal_handler(number, stopping.set)
        async with served(site, sock):
            address = address_of(sock, site.prefix)
            tell_address(address, pretty=is_pretty)
            if not no_open and sys.stdout.isatty():
                await asyncio.to_thread(webbrowser.open, address)
            await stopping.wait()

    asyncio.run(serve())

"""Serves a site with uvicorn, inside a running event loop.

uvicorn takes over neither signals nor logging: a worker in the same process handles its own signals, and the command
line or the app configures logging. A shutdown ends all streams first, so that it never waits for a reader.
"""

from __future__ import annotations

import asyncio
import errno
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, closing, contextmanager
from typing import Final

import uvicorn

from perdure.clock import SystemClock
from perdure.errors import SettingsError
from perdure.lifecycle.process.watchdog import Watchdog, WatchdogLimits
from perdure.surfaces.server.site import Site
from perdure.worker.settings import WorkerSettings

DEFAULT_PORT: Final = 8484
_OTHER_PORTS_TRIED: Final = 20  # ports that are tried after the default one
_CLOSE_TIMEOUT_SECONDS: Final = 1  # seconds that open requests get at a shutdown
_WAITING_CONNECTIONS: Final = 128


class _Server(uvicorn.Server):
    """uvicorn without its signal handlers."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals to the process."""
        yield


def listening(host: str, port: int | None) -> socket.socket:
    """A listening socket; without a port, on 8484 or the next free port."""
    if port is not None and not 0 <= port <= 65_535:  # noqa: PLR2004 - as TCP has it
        raise SettingsError("port", f"must be from 0 (any that is free) to 65535, got {port}")
    for candidate in [port] if port is not None else range(DEFAULT_PORT, DEFAULT_PORT + _OTHER_PORTS_TRIED):
        try:
            return _bound(host, candidate)
        except OSError as error:
            if error.errno == errno.EADDRINUSE and port is None:
                continue
            if error.errno == errno.EADDRINUSE:
                raise SettingsError("port", f"{port} of {host} is in use: choose another, or 0 for any") from None
            raise SettingsError("host", f"{host!r} with port {candidate} cannot be used: {error.strerror}") from None
    raise SettingsError(
        "port", f"is missing: {DEFAULT_PORT} and the {_OTHER_PORTS_TRIED} after it are in use; give a free one"
    )


def address_of(sock: socket.socket, prefix: str = "") -> str:
    """The address that people open in a browser."""
    host, port = sock.getsockname()[:2]
    shown = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(host, f"[{host}]" if ":" in host else host)  # noqa: S104
    return f"http://{shown}:{port}{prefix}/"


@asynccontextmanager
async def served(site: Site, sock: socket.socket) -> AsyncIterator[None]:
    """Serve the site on this socket while the block runs; then end streams, requests and the site, in this order.

    Raises SettingsError if other machines can reach the address and no token exists.
    """
    config = uvicorn.Config(
        site,
        log_config=None,
        log_level="warning",
        access_log=False,
        proxy_headers=False,  # the access layer reads these headers, from declared proxies only
        lifespan="off",
        ws="none",
        server_header=False,
        timeout_graceful_shutdown=_CLOSE_TIMEOUT_SECONDS,
        backlog=_WAITING_CONNECTIONS,
    )
    server = _Server(config)
    with closing(sock):
        async with site:
            await site.listen_on(sock.getsockname()[0])
            serving = asyncio.create_task(server.serve([sock]), name="perdure desk")
            watchdog = None if site.workers else _watchdog(site)  # a worker has its own watchdog
            try:
                yield
            finally:
                if watchdog is not None:
                    watchdog.stop()
                await site.end_streams()
                server.should_exit = True
                await asyncio.wait({serving})


def _watchdog(site: Site) -> Watchdog:
    """Report what blocks the event loop of a process that only serves."""
    usual = WorkerSettings()
    limits = WatchdogLimits(
        blocked_after=usual.blocked_after, slow_store_after=usual.slow_store_after, beat_within=usual.lease
    )
    loop = asyncio.get_running_loop()
    watchdog = Watchdog(loop, site.backing.events, SystemClock(), limits=limits, calls=(), occupied=tuple)
    watchdog.start()
    return watchdog


def _bound(host: str, port: int) -> socket.socket:
    family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    sock = socket.socket(family, kind, protocol)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind(address)
        sock.listen(_WAITING_CONNECTIONS)
    except OSError:
        sock.close()
        raise
    sock.setblocking(False)
    return sock

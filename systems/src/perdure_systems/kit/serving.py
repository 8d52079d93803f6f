"""Serve an application over a real socket while a block runs. Signals stay with the caller."""

from __future__ import annotations

import asyncio
import errno
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any, Final

import uvicorn
from starlette.types import ASGIApp

from perdure import SettingsError

LOOPBACK: Final = "127.0.0.1"
_LOOK_EVERY_SECONDS: Final = 0.005  # the server has no event for its start


@asynccontextmanager
async def serving(app: ASGIApp, listening: socket.socket, **options: Any) -> AsyncIterator[str]:
    """Serve until the block ends; its address. `options` are those of uvicorn's Config."""
    server = _Server(uvicorn.Config(app, **{"log_level": "warning", "lifespan": "off", **options}))
    task = asyncio.create_task(server.serve([listening]))
    try:
        while not server.started and not task.done():  # noqa: ASYNC110 - as above
            await asyncio.sleep(_LOOK_EVERY_SECONDS)
        host, port = listening.getsockname()[:2]
        yield f"{'https' if server.config.is_ssl else 'http'}://{host}:{port}"
    finally:
        server.should_exit = True
        await task


def bind(host: str, port: int) -> socket.socket:
    """A listening socket; port 0 takes a free one. A port in use is a clear error."""
    listening = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
    except OSError as error:
        listening.close()
        reason = "is in use: choose another one with --port" if error.errno == errno.EADDRINUSE else f"failed: {error}"
        raise SettingsError("port", f"{port} on {host} {reason}") from None
    listening.listen()
    return listening


class _Server(uvicorn.Server):
    """Leaves the signals alone."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Capture none."""
        yield

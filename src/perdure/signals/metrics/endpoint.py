"""`/metrics` of a worker: a small HTTP server that knows one path.

The metrics extra brings no web server, and a worker should not need one to be watched. A request is read up to a limit
of size and time and answered, then the connection is closed. Callers on this machine need no token; others need one,
with any scope, because every scope includes reading.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from http import HTTPStatus
from ipaddress import ip_address
from typing import Final

from perdure.errors import SettingsError, StoreError
from perdure.operate.commands.tokens import check_token, has_live_token
from perdure.signals.metrics.exporter import Exporter, StoreSource

_REQUEST_LIMIT_BYTES: Final = 16_384
_REQUEST_TIMEOUT_SECONDS: Final = 5.0
_ANSWER_TIMEOUT_SECONDS: Final = 10.0
_ANSWERS_AT_ONCE: Final = 20
_BEARER: Final = "bearer"
_UNAUTHORIZED: Final = "Send a token: Authorization: Bearer pdr_…; `perdure token create --scope read` makes one.\n"
_PLAIN: Final = "text/plain; charset=utf-8"
_HIGHEST_PORT: Final = 65_535
_FORWARDING: Final = frozenset({"x-forwarded-for", "forwarded", "x-real-ip", "via"})  # set by a proxy


@asynccontextmanager
async def served_metrics(exporter: Exporter, store: StoreSource, host: str, port: int) -> AsyncIterator[int]:
    """Answer scrapes on this address while the block runs; yields the port, and 0 chooses a free one.

    Raises SettingsError for an address that cannot be used, and for one that other machines reach if there is no token.
    """
    if not 0 <= port <= _HIGHEST_PORT:
        raise SettingsError("--metrics-port", f"must be from 0 (any that is free) to {_HIGHEST_PORT}, got {port}")
    if not is_here(host) and not await has_live_token(await store()):
        raise SettingsError(
            "--metrics-host",
            f"{host} can be reached by others, who need a token, and none has been created: run "
            "`perdure token create --name prometheus --scope read` first, or listen on 127.0.0.1",
        )
    endpoint = MetricsEndpoint(exporter, store)
    try:
        server = await asyncio.start_server(endpoint.answer, host, port, limit=_REQUEST_LIMIT_BYTES)
    except OSError as error:
        raise SettingsError(
            "--metrics-port", f"{port} of {host} cannot be used: {error.strerror}; choose another, or 0 for any"
        ) from None
    async with server:
        yield int(server.sockets[0].getsockname()[1])
    exporter.close()


class MetricsEndpoint:
    """Reads one request from a connection and answers it."""

    def __init__(self, exporter: Exporter, store: StoreSource) -> None:
        self._exporter = exporter
        self._store = store
        self._turns = asyncio.Semaphore(_ANSWERS_AT_ONCE)

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection; a caller that hangs up or is too slow is dropped."""
        try:
            with suppress(OSError, TimeoutError, EOFError, ValueError, asyncio.LimitOverrunError):
                async with asyncio.timeout(_REQUEST_TIMEOUT_SECONDS):
                    head = await reader.readuntil(b"\r\n\r\n")
                peer = writer.get_extra_info("peername")  # None: hung up already
                async with asyncio.timeout(_ANSWER_TIMEOUT_SECONDS), self._turns:
                    writer.write(await self._response(head, str(peer[0] if peer else "")))
                    await writer.drain()
        finally:
            writer.close()

    async def _response(self, head: bytes, peer: str) -> bytes:
        first, *lines = head.decode("latin-1").split("\r\n")
        method, _, rest = first.partition(" ")
        headers = dict(_header(line) for line in lines if ":" in line)
        if rest.partition(" ")[0].partition("?")[0] != "/metrics":
            return _written(HTTPStatus.NOT_FOUND, b"Only /metrics is served here.\n")
        if method not in {"GET", "HEAD"}:
            return _written(HTTPStatus.METHOD_NOT_ALLOWED, b"", {"allow": "GET, HEAD"})
        try:
            is_known = await self._is_known(headers, peer)
        except StoreError as error:
            return _written(HTTPStatus.SERVICE_UNAVAILABLE, f"{error}\n".encode())
        if not is_known:
            challenge = {"www-authenticate": 'Bearer realm="perdure"'}
            return _written(HTTPStatus.UNAUTHORIZED, _UNAUTHORIZED.encode(), challenge)
        found = await self._exporter.exposition(headers.get("accept"))
        answer = _written(HTTPStatus.OK, found.body, {"content-type": found.content_type})
        return answer if method == "GET" else answer.partition(b"\r\n\r\n")[0] + b"\r\n\r\n"

    async def _is_known(self, headers: Mapping[str, str], peer: str) -> bool:
        authorization = headers.get("authorization")
        if authorization is None:
            return is_here(peer) and is_here(_name(headers.get("host", ""))) and not _FORWARDING & headers.keys()
        scheme, _, secret = authorization.partition(" ")
        return scheme.lower() == _BEARER and await check_token(await self._store(), secret.strip()) is not None


def is_here(host: str) -> bool:
    """Whether a name or address means this machine itself."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _name(host: str) -> str:
    """A Host header without its port. A page of another site can only send a name of its own."""
    return host.partition("]")[0].lstrip("[") if host.startswith("[") else host.partition(":")[0]


def _header(line: str) -> tuple[str, str]:
    name, _, value = line.partition(":")
    return name.strip().lower(), value.strip()


def _written(status: HTTPStatus, body: bytes, headers: Mapping[str, str] | None = None) -> bytes:
    shown = {
        "content-type": _PLAIN,
        "content-length": str(len(body)),
        "cache-control": "no-store",
        "x-content-type-options": "nosniff",
        "connection": "close",
        **(headers or {}),
    }
    lines = "".join(f"{name}: {value}\r\n" for name, value in shown.items())
    return f"HTTP/1.1 {status.value} {status.phrase}\r\n{lines}\r\n".encode("latin-1") + body

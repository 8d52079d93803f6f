"""A proxy through which Chromium reaches the outside, so that no page leads it into the own network.

A page may redirect, embed and fetch what it likes, and names may resolve to something else a moment later. So the check
is made where the connection is: the proxy resolves the name, refuses addresses that are not allowed, and connects to
the one that it has checked. It listens on the loopback interface only.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Final
from urllib.parse import urlsplit

import structlog

from perdure_systems.audits.addresses import AddressRefused, allowed_ip

_HEAD_TIMEOUT_SECONDS: Final = 30
_CHUNK_BYTES: Final = 65_536
_REQUEST_LINE_WORDS: Final = 3

log = structlog.get_logger("perdure_systems.audits")


@asynccontextmanager
async def open_egress() -> AsyncIterator[str]:
    """Serve the proxy for the block; its address."""
    server = await asyncio.start_server(_serve, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()


async def _serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        async with asyncio.timeout(_HEAD_TIMEOUT_SECONDS):
            head = await reader.readuntil(b"\r\n\r\n")
            host, port, first = _target(head)
            ip = await allowed_ip(host, port)
            far_reader, far_writer = await asyncio.open_connection(ip, port)
    except AddressRefused as error:
        log.warning("a page was kept from an address", reason=str(error))
        await _refuse(writer, b"403 Forbidden")
    except (OSError, ValueError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
        await _refuse(writer, b"502 Bad Gateway")
    else:
        if first is None:
            writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        else:
            far_writer.write(first)
        with suppress(OSError):
            await asyncio.gather(_pass_on(reader, far_writer), _pass_on(far_reader, writer))


def _target(head: bytes) -> tuple[str, int, bytes | None]:
    """Whom a request is for, and its head as that server wants it; None for a tunnel."""
    line, _, rest = head.partition(b"\r\n")
    words = line.decode("latin-1").split(" ")
    if len(words) != _REQUEST_LINE_WORDS:
        raise ValueError("no request")
    method, target, version = words
    if method == "CONNECT":
        parts = urlsplit(f"//{target}")
        return parts.hostname or "", parts.port or 443, None
    parts = urlsplit(target)
    if parts.scheme != "http":
        raise ValueError("no address")
    path = f"{parts.path or '/'}{'?' + parts.query if parts.query else ''}"
    kept = [one for one in rest.split(b"\r\n") if one and not one.lower().startswith((b"proxy-", b"connection:"))]
    lines = [f"{method} {path} {version}".encode("latin-1"), *kept, b"Connection: close", b"", b""]
    return parts.hostname or "", parts.port or 80, b"\r\n".join(lines)


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(_CHUNK_BYTES):
            writer.write(data)
            await writer.drain()
    finally:
        writer.close()


async def _refuse(writer: asyncio.StreamWriter, status: bytes) -> None:
    writer.write(b"HTTP/1.1 " + status + b"\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
    with suppress(OSError):
        await writer.drain()
    writer.close()

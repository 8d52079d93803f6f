"""A real HTTP receiver on loopback whose answers a test chooses byte by byte."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import msgspec
from msgspec import Struct


class Received(Struct, frozen=True):
    """One request as it came over the wire. Names of headers are in lower case."""

    line: str
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        """The decoded body."""
        return msgspec.json.decode(self.body)


Reply = Callable[[asyncio.StreamWriter], Awaitable[None]]


class Receiver:
    """What came in, and how each request is answered: `script` in order, then `status` with `extra` headers."""

    def __init__(self, port: int, host: str = "127.0.0.1", scheme: str = "http") -> None:
        self.port = port
        shown = f"[{host}]" if ":" in host else host
        self.url = f"{scheme}://{shown}:{port}/hook"
        self.received: list[Received] = []
        self.script: list[Reply] = []
        self.connections = 0
        self.status = 200
        self.extra = ""
        self.body = b"thanks"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Read one request and answer it."""
        self.connections += 1
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            line, *rest = head.strip().split("\r\n")
            headers = {name.lower(): value.strip() for name, _, value in (one.partition(":") for one in rest)}
            body = await reader.readexactly(int(headers.get("content-length", "0")))
            self.received.append(Received(line, headers, body))
            await (self.script.pop(0) if self.script else self._plain)(writer)
            await writer.drain()
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    async def _plain(self, writer: asyncio.StreamWriter) -> None:
        head = f"HTTP/1.1 {self.status} Fine\r\nContent-Length: {len(self.body)}\r\n{self.extra}\r\n"
        writer.write(head.encode() + self.body)


def says(*parts: bytes) -> Reply:
    """Answer with exactly these bytes, then close."""

    async def reply(writer: asyncio.StreamWriter) -> None:
        for part in parts:
            writer.write(part)
            await writer.drain()

    return reply


async def never(writer: asyncio.StreamWriter) -> None:
    """Answer nothing until the sender has gone."""
    await writer.wait_closed()


async def drips(writer: asyncio.StreamWriter) -> None:
    """Answer byte by byte, without an end."""
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n")
    while not writer.is_closing():
        writer.write(b".")
        await writer.drain()
        await asyncio.sleep(0.01)


async def floods(writer: asyncio.StreamWriter) -> None:
    """Answer with a body that has no end, as fast as it is read."""
    writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
    while not writer.is_closing():
        writer.write(b"x" * 65_536)
        await writer.drain()


@asynccontextmanager
async def receiving(*, host: str = "127.0.0.1", tls: ssl.SSLContext | None = None) -> AsyncIterator[Receiver]:
    """A receiver that listens until the block ends."""
    made: list[Receiver] = []
    tasks: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        try:
            await made[0].serve(reader, writer)
        finally:
            tasks.discard(task)

    server = await asyncio.start_server(serve, host, 0, ssl=tls)
    made.append(Receiver(server.sockets[0].getsockname()[1], host, "https" if tls else "http"))
    try:
        yield made[0]
    finally:
        server.close()
        for task in tuple(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.sleep(0.01)  # transports close in the next turns of the loop

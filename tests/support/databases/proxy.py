"""A man in the middle of a connection to PostgreSQL, who can lose exactly the message that matters."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from enum import StrEnum
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit


class Cut(StrEnum):
    """When the connection is cut."""

    BEFORE_COMMIT = "before"  # the server never sees it
    AFTER_COMMIT = "after"  # the server has committed, and the client never learns


class Proxy:
    """Forwards everything, until a connection that has carried `marked` sends COMMIT and a cut is ordered."""

    def __init__(self, url: str, marked: bytes) -> None:
        self._upstream = urlsplit(url)
        self._marked = marked
        self._server: asyncio.Server | None = None
        self._links: set[asyncio.Task[None]] = set()
        self.order: Cut | None = None
        self.cuts = 0

    @property
    def url(self) -> str:
        """The database, by way of the proxy."""
        assert self._server is not None
        host, port = self._server.sockets[0].getsockname()
        options = {name: value for name, value in parse_qsl(self._upstream.query) if name not in {"host", "port"}}
        user = f"{self._upstream.username}@" if self._upstream.username else ""
        where = f"{user}{host}:{port}"
        return urlunsplit(("postgresql", where, self._upstream.path, urlencode(options), ""))

    async def open(self) -> None:
        """Listen on a port of the loopback interface."""
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)

    async def close(self) -> None:
        """End every connection."""
        assert self._server is not None
        self._server.close()
        for link in list(self._links):
            link.cancel()
        await asyncio.gather(*self._links, return_exceptions=True)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.get_running_loop().create_task(self._link(reader, writer))
        self._links.add(task)
        task.add_done_callback(self._links.discard)

    async def _link(self, client: asyncio.StreamReader, to_client: asyncio.StreamWriter) -> None:
        server, to_server = await self._connect()
        lost = asyncio.Event()
        back = asyncio.create_task(_pump(server, to_client, lost))
        try:
            with suppress(ConnectionError):
                await self._forward(client, to_server, lost)
        finally:
            back.cancel()
            for writer in (to_client, to_server):
                writer.transport.abort()
            await asyncio.gather(back, return_exceptions=True)

    async def _forward(
        self, client: asyncio.StreamReader, to_server: asyncio.StreamWriter, lost: asyncio.Event
    ) -> None:
        marked = False
        while data := await client.read(65_536):
            marked = marked or self._marked in data
            cut = self.order if marked and b"COMMIT" in data else None
            if cut is not None:
                self.cuts += 1
                self.order = None
                if cut is Cut.AFTER_COMMIT:
                    lost.set()
                    to_server.write(data)
                    await to_server.drain()
                    await asyncio.sleep(0.2)  # the server's time to do it; the promise holds either way
                return
            to_server.write(data)
            await to_server.drain()

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        host = dict(parse_qsl(self._upstream.query)).get("host") or self._upstream.hostname or "127.0.0.1"
        port = self._upstream.port or 5432
        if host.startswith("/"):
            return await asyncio.open_unix_connection(f"{host}/.s.PGSQL.{port}")
        return await asyncio.open_connection(host, port)


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, lost: asyncio.Event) -> None:
    with suppress(ConnectionError):
        while data := await reader.read(65_536):
            if not lost.is_set():
                writer.write(data)
                await writer.drain()
    writer.close()


@asynccontextmanager
async def in_between(url: str, marked: bytes) -> AsyncIterator[Proxy]:
    """A proxy for the time of a block."""
    proxy = Proxy(url, marked)
    await proxy.open()
    try:
        yield proxy
    finally:
        await proxy.close()

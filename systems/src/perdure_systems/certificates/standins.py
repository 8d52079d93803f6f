"""Local stand-ins: a TLS endpoint with a certificate of its own, and a cloud that lists certificates."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec

from perdure_systems.certificates.signing import Authority, make_csr


def make_certificate(name: str, now: datetime, lifetime: timedelta) -> tuple[str, str]:
    """A certificate chain and its key, both as PEM, from an authority that is thrown away."""
    csr, key = make_csr(name)
    with TemporaryDirectory() as folder:
        return Authority(Path(folder)).sign(csr, [name], lifetime, now).chain, key


@asynccontextmanager
async def tls_endpoint(chain: str, key: str) -> AsyncIterator[str]:
    """A server that shows this certificate; its address as `host:port`."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    with TemporaryDirectory() as folder:
        chain_file, key_file = Path(folder) / "chain.pem", Path(folder) / "key.pem"
        chain_file.write_text(chain, encoding="utf-8")
        key_file.write_text(key, encoding="utf-8")
        context.load_cert_chain(chain_file, key_file)
    async with _listening(lambda writer: writer.close(), context) as address:
        yield address


class SilentEndpoint:
    """An endpoint that accepts connections and stays silent until it is released: then it hangs up."""

    def __init__(self) -> None:
        self.address = ""
        self.asked = asyncio.Event()
        self._hang_up = asyncio.Event()

    def let_go_on(self) -> None:
        """Hang up, now and from now on."""
        self._hang_up.set()

    async def serve(self, _: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Take a connection and keep it open."""
        self.asked.set()
        await self._hang_up.wait()
        writer.close()


@asynccontextmanager
async def silent_endpoint() -> AsyncIterator[SilentEndpoint]:
    """A server that accepts connections and does not answer until it is released."""
    endpoint = SilentEndpoint()
    server = await asyncio.start_server(endpoint.serve, "127.0.0.1", 0)
    async with server:
        endpoint.address = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
        try:
            yield endpoint
        finally:
            endpoint.let_go_on()


@asynccontextmanager
async def cloud_listing(certificates: Mapping[str, str]) -> AsyncIterator[str]:
    """A server that lists these certificates, PEM by name; its URL."""
    body = msgspec.json.encode([{"name": name, "certificate": pem} for name, pem in certificates.items()])
    head = (
        f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    )

    def answer(writer: asyncio.StreamWriter) -> None:
        writer.write(head.encode() + body)
        writer.close()

    async with _listening(answer) as address:
        yield f"http://{address}/certificates"


@asynccontextmanager
async def _listening(
    answer: Callable[[asyncio.StreamWriter], None], context: ssl.SSLContext | None = None
) -> AsyncIterator[str]:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if context is None:
            await reader.readuntil(b"\r\n\r\n")
        answer(writer)

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context)
    async with server:
        yield f"127.0.0.1:{server.sockets[0].getsockname()[1]}"

"""A real server of a site in a thread of this process: for clients that speak HTTP over the network."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from tests.support.web.http_site import token_of

from perdure import App
from perdure.mcp import McpSettings
from perdure.surfaces.server.runner import address_of, listening, served
from perdure.surfaces.server.site import Site


class Running:
    """Where a server listens, and the secrets of tokens by scope."""

    def __init__(self, address: str, tokens: dict[str, str]) -> None:
        self.address = address
        self.tokens = tokens


@contextmanager
def serving(app: App, *, read_only: bool = False, mcp: McpSettings | None = None) -> Iterator[Running]:
    """Serve the app's site until the block ends."""
    ready, stop = threading.Event(), threading.Event()
    running: list[Running] = []
    failed: list[BaseException] = []

    async def serve() -> None:
        sock = listening("127.0.0.1", 0)
        async with app, served(site := Site(app, read_only=read_only, mcp=mcp), sock):
            tokens = {scope: await token_of(site, scope) for scope in ("read", "operate", "admin")}
            running.append(Running(address_of(sock).rstrip("/"), tokens))
            ready.set()
            await asyncio.to_thread(stop.wait)

    def run() -> None:
        try:
            asyncio.run(serve())
        except BaseException as error:  # noqa: BLE001 - told to the test
            failed.append(error)
            ready.set()

    thread = threading.Thread(target=run, name="http server", daemon=True)
    thread.start()
    ready.wait(30)
    if failed:
        raise failed[0]
    try:
        yield running[0]
    finally:
        stop.set()
        thread.join(30)
        assert not thread.is_alive(), "the server did not stop"

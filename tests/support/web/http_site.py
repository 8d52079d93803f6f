"""A site on a database of its own, and clients that need no network."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx

from perdure import App
from perdure.operate.desk import Desk
from perdure.surfaces.server.site import Site

ADDRESS = "http://127.0.0.1:8484"


def make_app(url: str) -> App:
    """An app with two kinds of jobs."""
    app = App(url)

    @app.job
    async def greet(name: str, times: int = 1) -> str:
        return f"hello {name}" * times

    @app.job(queue="mail")
    async def send(to: list[str]) -> None:
        raise OSError(str(to))

    return app


async def token_of(site: Site, scope: str) -> str:
    """The secret of a new token with this scope."""
    desk = Desk(await site.backing.store(), "test")
    return (await desk.create_token(f"test {scope}", scope))[1]


@asynccontextmanager
async def client_of(
    site: Site, token: str | None = None, *, address: str = "127.0.0.1"
) -> AsyncIterator[httpx.AsyncClient]:
    """A client of the site that calls from this address, with this token."""
    transport = httpx.ASGITransport(site, client=(address, 5000))
    headers = {} if token is None else {"authorization": f"Bearer {token}"}
    async with httpx.AsyncClient(transport=transport, base_url=ADDRESS, headers=headers) as client:
        yield client

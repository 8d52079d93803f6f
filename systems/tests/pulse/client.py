"""Pulse's API and its desk without a socket, as its own process serves them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import httpx

from perdure import Worker
from perdure.desk import asgi
from perdure.surfaces.server.site import Site
from perdure_systems.kit.web import api
from perdure_systems.pulse.jobs import app
from perdure_systems.pulse.system import SYSTEM

ADMIN = {"Authorization": "Bearer secret"}


@asynccontextmanager
async def client(
    workers: Sequence[Worker] = (), *, desk: Site | None = None, caller: str = "127.0.0.1"
) -> AsyncIterator[httpx.AsyncClient]:
    """A client of the API, and of the desk if it is given."""
    served = api(SYSTEM.routes, desk=desk)
    served.state.workers = list(workers)
    transport = httpx.ASGITransport(served, raise_app_exceptions=False, client=(caller, 1))
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as one:
        yield one


@asynccontextmanager
async def desk_client(workers: Sequence[Worker] = (), caller: str = "127.0.0.1") -> AsyncIterator[httpx.AsyncClient]:
    """A client of pulse with its desk."""
    async with asgi(app, workers=list(workers)) as desk, client(workers, desk=desk, caller=caller) as one:
        yield one

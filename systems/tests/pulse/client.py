"""Pulse's API without a socket, as its own process serves it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import httpx

from perdure import Worker
from perdure_systems.kit.web import api
from perdure_systems.pulse.system import SYSTEM

ADMIN = {"Authorization": "Bearer secret"}


@asynccontextmanager
async def client(workers: Sequence[Worker] = ()) -> AsyncIterator[httpx.AsyncClient]:
    """A client of the API."""
    served = api(SYSTEM.routes)
    served.state.workers = list(workers)
    transport = httpx.ASGITransport(served, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://pulse") as one:
        yield one

"""A site, open, and a client that may do everything and checks every answer against the OpenAPI document."""

from __future__ import annotations

from collections.abc import AsyncIterator

import httpx
import pytest
from tests.support.web.http_site import client_of, make_app, token_of
from tests.support.web.openapi_answers import check_answer

from perdure import App
from perdure.surfaces.server.site import Site


@pytest.fixture
def app(engine_url: str) -> App:
    return make_app(engine_url)


@pytest.fixture
async def site(app: App) -> AsyncIterator[Site]:
    async with app, Site(app) as site:
        yield site


@pytest.fixture
async def client(site: Site) -> AsyncIterator[httpx.AsyncClient]:
    async with client_of(site, await token_of(site, "admin")) as client:
        client.event_hooks["response"].append(check_answer)
        yield client

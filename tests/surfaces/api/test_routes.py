"""Every route × method × scope, made from the table."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
from tests.support.web.http_site import client_of, make_app, token_of

from perdure.domain.operate.access import Scope
from perdure.surfaces.api.route import Route
from perdure.surfaces.api.router import BASE
from perdure.surfaces.api.routes import ROUTES
from perdure.surfaces.server.site import Site

METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
STREAMS = {"follow"}
SHORT = {"show_profile": {"seconds": "0.1"}}


def path_of(route: Route) -> str:
    path = route.path
    for name in route.parameters:
        path = path.replace(f"{{{name}}}", "none%2Fsuch")
    return BASE + path


async def ask(client: httpx.AsyncClient, route: Route) -> httpx.Response:
    json: dict[str, str] | None = {} if route.request is not None else None
    return await client.request(route.method, path_of(route), json=json, params=SHORT.get(route.name))


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[Site]:
    """One engine will do: the table does not know about engines."""
    app = make_app(f"sqlite:///{tmp_path}/a.db")
    async with app, Site(app) as site:
        yield site


@pytest.mark.parametrize("scope", list(Scope))
async def test_every_route_asks_for_its_scope(site: Site, scope: Scope) -> None:
    async with client_of(site, await token_of(site, scope), address="192.0.2.7") as client:
        for route in ROUTES:
            if route.name in STREAMS and scope.allows(route.scope):
                continue  # the answer would not end
            answer = await ask(client, route)
            if scope.allows(route.scope):
                assert answer.status_code not in {401, 403, 405, 500, 503}, (route.name, answer.text)
            else:
                assert answer.status_code == 403, (route.name, answer.text)


async def test_without_a_token_nothing_is_reported_to_others(site: Site) -> None:
    async with client_of(site, address="192.0.2.7") as client:
        for route in ROUTES:
            answer = await ask(client, route)
            assert (answer.status_code, answer.headers["content-type"]) == (401, "application/problem+json"), route.name


async def test_a_read_only_desk_refuses_all_but_looking(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/a.db"
    async with make_app(url), Site(url, read_only=True) as site, client_of(site) as client:
        for route in ROUTES:
            if route.scope is not Scope.READ:
                assert (await ask(client, route)).status_code == 403, route.name


async def test_other_methods_are_refused_with_the_allowed_ones(site: Site) -> None:
    by_path: dict[str, set[str]] = {}
    for route in ROUTES:
        by_path.setdefault(path_of(route), set()).add(route.method)
    async with client_of(site, await token_of(site, "admin")) as client:
        for path, methods in by_path.items():
            for method in set(METHODS) - methods:
                answer = await client.request(method, path)
                assert answer.status_code == 405, (method, path)
                allowed = {word.strip() for word in answer.headers["allow"].split(",")}
                assert allowed == methods | ({"HEAD"} if "GET" in methods else set())


def test_every_handler_has_one_route_and_a_summary_of_one_line() -> None:
    names = [route.name for route in ROUTES]
    assert len(names) == len(set(names))
    assert all(0 < len(route.summary) <= 120 for route in ROUTES)
    assert all(route.scope is not Scope.READ for route in ROUTES if route.method != "GET")

"""The ASGI application that joins API, pages and health checks."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from inspect import iscoroutinefunction
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.applications import Starlette
from starlette.routing import Mount
from starlette.types import ASGIApp
from tests.support.web.http_site import client_of

from perdure import App, SettingsError, StoreRefused
from perdure.desk import asgi
from perdure.storage.port import Store
from perdure.storage.time_limits import deadline
from perdure.surfaces.api.routes import ROUTES
from perdure.surfaces.server.site import Site

NOT_ASKED = {"live", "diagnostics"}  # one does not end, the others ask the process


async def get(app: ASGIApp, path: str) -> httpx.Response:
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://127.0.0.1") as client:
        return await client.get(path)


async def test_health_is_reported_without_a_database_and_readiness_with_one(client: httpx.AsyncClient) -> None:
    alive, ready = await client.get("/healthz"), await client.get("/readyz")
    assert (alive.status_code, alive.json()) == (200, {"status": "ok"})
    assert ready.status_code == 200
    assert {check["name"]: check["status"] for check in ready.json()["checks"]}["workers"] == "warning"


async def test_the_desk_works_below_its_prefix_and_behind_a_proxy_that_takes_it_off(app: App) -> None:
    async with app, asgi(app, prefix="/perdure/") as site:
        assert [(await get(site, path)).status_code for path in ("/perdure/api/v1/jobs", "/api/v1/jobs")] == [200, 200]


@pytest.mark.parametrize("path", ["/api", "/api/", "/api/v2/jobs"])
async def test_a_program_gets_no_page_where_no_api_is(client: httpx.AsyncClient, path: str) -> None:
    answer = await client.get(path)
    assert (answer.status_code, answer.headers["content-type"]) == (404, "application/problem+json")


async def test_mounted_in_another_app_the_first_request_opens_the_desk(app: App) -> None:
    site = asgi(app)
    async with app:
        outer = Starlette(routes=[Mount("/ops/desk", site)])
        answer = await get(outer, "/ops/desk/api/v1/overview")
        document = await get(outer, "/ops/desk/api/v1/openapi.json")
        await site.close()
    assert answer.status_code == 200
    assert document.json()["servers"] == [{"url": "/ops/desk/api/v1"}]


async def test_a_site_can_be_opened_again(site: Site) -> None:
    await site.close()
    await site.open()
    assert (await get(site, "/api/v1/jobs")).status_code == 200


@pytest.mark.parametrize("source", ["sqlite:///", "mysql://x", 7])
def test_a_bad_source_is_refused_at_once(source: object) -> None:
    with pytest.raises(SettingsError):
        Site(source)  # type: ignore[arg-type]


def test_a_file_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    with pytest.raises(StoreRefused, match="no such file"):
        Site(f"sqlite:///{tmp_path}/none.db")
    assert not (tmp_path / "none.db").exists()


@pytest.mark.parametrize("prefix", ["/a//b", "a?b", "/%2F", 3])
def test_a_bad_prefix_is_refused(prefix: object, tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="prefix"):
        Site(App(f"sqlite:///{tmp_path}/a.db"), prefix=prefix)  # type: ignore[arg-type]


async def test_every_question_of_a_request_has_a_time_limit(
    client: httpx.AsyncClient, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also who calls: a database that hangs is told after seconds, not when a connection gives up."""
    store, endless = site.backing.opened(), set[str]()

    def noted(name: str, method: Callable[..., Any]) -> Callable[..., Any]:
        async def ask(*args: Any, **kwargs: Any) -> Any:
            if deadline() is None:
                endless.add(name)
            return await method(*args, **kwargs)

        return ask

    for name in vars(Store).keys() | {name for part in Store.__mro__ for name in vars(part)}:
        if not name.startswith("_") and iscoroutinefunction(method := getattr(store, name, None)):
            monkeypatch.setattr(store, name, noted(name, method))
    job = (await client.post("/api/v1/jobs", json={"kind": "send", "args": {"to": []}})).json()["id"]
    paths = [f"/api/v1{route.path}" for route in ROUTES if route.method == "GET" and route.tag not in NOT_ASKED]
    pages = ["/", "/jobs", "/dead", "/queues", "/kinds", "/schedules", "/workers", "/flows", "/gates", "/approvals"]
    for path in (*paths, *pages, "/audit", "/bulk", "/alerts", "/webhooks", f"/jobs/{job}"):
        answer = await client.get(re.sub(r"{\w+}", job, path), headers={"accept": "text/html, application/json"})
        assert answer.status_code in {200, 404, 409, 410}, (path, answer.text)
    commands, loops, doctor = {"enqueue", "note_use", "shared_key"}, {"take_bulk"}, {"diagnose", "check_schema"}
    assert endless <= commands | loops | doctor


async def test_others_are_led_to_the_login_page_of_the_desk(site: Site) -> None:
    async with client_of(site, address="192.0.2.7") as client:
        answer = await client.get("/dead", headers={"accept": "text/html"})
        assert (answer.status_code, answer.headers["location"]) == (303, "/login?next=/dead")
        assert "desk" in (await client.get("/login", headers={"accept": "text/html"})).text


async def test_what_is_refused_has_the_look_of_the_desk(site: Site) -> None:
    async with client_of(site) as client:
        page = await client.get("/", headers={"accept": "text/html", "host": "evil.example"})
        [style] = re.findall(r'<link rel="stylesheet" href="(/static/[^"]+)">', page.text)
        assert (page.status_code, (await client.get(style)).status_code) == (421, 200)


@pytest.mark.parametrize("path", ["/", "/api/v1/attention"])
async def test_a_page_asks_the_database_who_the_workers_are_once(
    site: Site, client: httpx.AsyncClient, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = await site.backing.store()
    asked: list[str] = []

    def counted(name: str) -> Callable[[], Awaitable[object]]:
        ask = getattr(store, name)

        async def counting() -> object:
            asked.append(name)
            return await ask()

        return counting

    for name in ("workers", "pauses", "now", "schedules"):
        monkeypatch.setattr(store, name, counted(name))
    assert (await client.get(path)).status_code == 200
    assert "workers" in asked
    assert sorted(asked) == sorted(set(asked))

"""`/metrics` of the desk: who may scrape, and what is said where the extra is missing."""

from __future__ import annotations

import builtins
from typing import Any

import httpx
import pytest
from tests.signals.metrics.exposed import Exposed
from tests.support.web.http_site import client_of, make_app, token_of

from perdure import App, SettingsError
from perdure.desk import AccessSettings, asgi
from perdure.metrics import exporter
from perdure.surfaces.server.site import Site


async def test_a_scrape_with_a_read_token_or_from_this_machine_is_answered(app: App, site: Site) -> None:
    await app.job_named("greet").enqueue(name="ada")
    async with client_of(site, await token_of(site, "operate")) as operator:
        await operator.post("/api/v1/jobs", json={"kind": "greet", "args": {"name": "eve"}})
    async with client_of(site) as here, client_of(site, await token_of(site, "read"), address="10.0.0.7") as there:
        for client in (here, there):
            answer = await client.get("/metrics")
            assert answer.status_code == 200
            seen = Exposed(answer.text)
            assert seen.value("perdure_cluster_jobs", queue="default", state="ready") == 2
            assert seen.value("perdure_enqueued_total", queue="default", kind="greet") == 2
        asked = await there.get("/metrics", headers={"accept": "application/openmetrics-text;version=1.0.0"})
        assert Exposed(asked.text, openmetrics=True).value("perdure_cluster_up") == 1
        assert (await here.head("/metrics")).status_code == 200
        assert (await here.delete("/metrics")).status_code in {403, 405}


async def test_others_without_a_token_get_401_and_no_login_page(site: Site) -> None:
    async with client_of(site, address="10.0.0.7") as client:
        answer = await client.get("/metrics", headers={"accept": "text/html"})
        assert (answer.status_code, answer.headers["www-authenticate"]) == (401, 'Bearer realm="perdure"')
        assert "perdure_" not in answer.text
    async with client_of(site, "pdr_wrong", address="127.0.0.1") as client:
        assert (await client.get("/metrics")).status_code == 401


async def test_a_desk_that_requires_a_token_requires_it_here_too(engine_url: str) -> None:
    app = make_app(engine_url)
    async with app, asgi(app, access=AccessSettings(requires_token=True)) as site, client_of(site) as client:
        assert (await client.get("/metrics")).status_code == 401


async def test_below_a_prefix(app: App) -> None:
    async with app, asgi(app, prefix="/ops") as site:
        transport = httpx.ASGITransport(site, client=("127.0.0.1", 5000))
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            assert (await client.get("/ops/metrics")).status_code == 200


async def test_without_the_extra_the_desk_says_what_to_install(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *more: Any, **others: Any) -> Any:
        if name == "perdure.signals.metrics.making":
            raise ModuleNotFoundError("No module named 'prometheus_client'", name="prometheus_client")
        return real(name, *more, **others)

    monkeypatch.setattr(builtins, "__import__", without)
    async with app, asgi(app) as site, client_of(site) as client:
        answer = await client.get("/metrics")
        assert (answer.status_code, "pip install 'perdure[metrics]'" in answer.text) == (501, True)
        assert (await client.get("/readyz")).status_code == 200
    with pytest.raises(SettingsError, match=r"perdure\[metrics\]"):
        exporter(app)

"""`/metrics` of a worker: who may scrape, what else is answered, and callers that dawdle."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress

import httpx
import pytest
from tests.signals.metrics.exposed import Exposed

from perdure import App, SettingsError, StoreUnavailable
from perdure.metrics import exporter
from perdure.signals.metrics import endpoint
from perdure.signals.metrics.endpoint import is_here, served_metrics
from perdure.storage.port import Store


@pytest.fixture
async def app(engine_url: str) -> AsyncIterator[App]:
    async with App(engine_url) as app:
        yield app


@pytest.fixture
async def client(app: App) -> AsyncIterator[httpx.AsyncClient]:
    async with (
        served_metrics(exporter(app, cluster=True), app.store, "127.0.0.1", 0) as port,
        httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}") as client,
    ):
        yield client


async def test_a_scrape_on_this_machine_needs_no_token(client: httpx.AsyncClient) -> None:
    answer = await client.get("/metrics")
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    assert Exposed(answer.text).value("perdure_cluster_up") == 1
    asked = await client.get("/metrics", headers={"accept": "application/openmetrics-text; version=1.0.0"})
    assert asked.headers["content-type"].startswith("application/openmetrics-text")
    assert (await client.head("/metrics")).status_code == 200
    assert (await client.get("/")).status_code == 404
    assert (await client.post("/metrics")).status_code == 405


async def test_others_need_a_token_and_a_wrong_one_is_refused(client: httpx.AsyncClient, app: App) -> None:
    desk = await app.desk("test")
    view, secret = await desk.create_token("prometheus", "read")

    async def status(**headers: str) -> int:
        shown = {name.replace("_", "-"): value for name, value in headers.items()}
        return (await client.get("/metrics", headers=shown)).status_code

    assert await status(authorization=f"Bearer {secret}") == 200
    assert await status(authorization=f"Bearer {secret}x") == 401
    assert await status(authorization="Basic eDp5") == 401
    assert await status(x_forwarded_for="10.0.0.7") == 401  # a proxy on this machine, for others
    assert await status(host="evil.example.com") == 401  # another site has pointed its name at us
    assert await status(host="evil.example.com", authorization=f"Bearer {secret}") == 200
    await desk.revoke_token(view.name)
    assert await status(authorization=f"Bearer {secret}") == 401


async def test_an_address_for_others_needs_a_token_to_exist(app: App) -> None:
    with pytest.raises(SettingsError, match=r"--metrics-host 0\.0\.0\.0 can be reached by others"):
        async with served_metrics(exporter(app), app.store, "0.0.0.0", 0):  # noqa: S104 - refused
            pass
    await (await app.desk("test")).create_token("prometheus", "read")
    async with served_metrics(exporter(app), app.store, "0.0.0.0", 0) as port:  # noqa: S104 - for this test only
        assert port


async def test_a_port_that_is_taken_is_named(app: App) -> None:
    async with served_metrics(exporter(app), app.store, "127.0.0.1", 0) as port:
        with pytest.raises(SettingsError, match=f"--metrics-port {port} of 127.0.0.1 cannot be used"):
            async with served_metrics(exporter(app), app.store, "127.0.0.1", port):
                pass
    with pytest.raises(SettingsError, match="from 0"):
        async with served_metrics(exporter(app), app.store, "127.0.0.1", 70_000):
            pass


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        b"\r\n\r\n",
        b"GET\r\n\r\n",
        b"\xff\xfe\r\n\r\n",
        b"GET /metrics HTTP/1.1\r\nx: " + b"y" * 70_000 + b"\r\n\r\n",
    ],
)
async def test_what_is_no_request_is_not_answered_with_metrics(app: App, sent: bytes) -> None:
    async with served_metrics(exporter(app), app.store, "127.0.0.1", 0) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(sent)
        writer.write_eof()
        answer = b""
        with suppress(ConnectionResetError):  # what it did not read is thrown back
            answer = await asyncio.wait_for(reader.read(), 10)
        writer.close()
        assert b"200 OK" not in answer


async def test_a_caller_that_says_nothing_is_left(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(endpoint, "_REQUEST_TIMEOUT_SECONDS", 0.05)
    async with served_metrics(exporter(app), app.store, "127.0.0.1", 0) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        assert await asyncio.wait_for(reader.read(), 10) == b""
        writer.close()


async def test_while_the_database_is_away_a_token_cannot_be_checked(app: App) -> None:
    async def away() -> Store:
        raise StoreUnavailable("gone")

    async with served_metrics(exporter(app), away, "127.0.0.1", 0) as port, httpx.AsyncClient() as client:
        url = f"http://127.0.0.1:{port}/metrics"
        assert (await client.get(url, headers={"authorization": "Bearer pdr_x"})).status_code == 503
        assert (await client.get(url)).status_code == 200


@pytest.mark.parametrize(
    ("host", "here"), [("127.0.0.1", True), ("::1", True), ("localhost", True), ("10.0.0.1", False)]
)
def test_what_is_here(host: str, here: bool) -> None:
    assert is_here(host) is here

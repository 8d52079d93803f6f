"""Agents over HTTP: a real server, the SDK's client, tokens of the desk, and the rules of its access layer."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from mcp.types import Implementation
from tests.support.builders.jobs import HOUR, enqueue
from tests.support.web.http_server import Running, serving
from tests.support.web.http_site import make_app
from tests.surfaces.mcp.conftest import LEGACY, Person, ask, refused

from perdure.app.connect import store_for
from perdure.desk import asgi
from perdure.mcp import McpSettings
from perdure.surfaces.mcp.endpoint import SESSIONS_LIMIT, SESSIONS_PER_CALLER
from perdure.surfaces.mcp.toolbox import TOOLS

WHY = "to test"
ARGUMENTS: dict[str, dict[str, Any]] = {
    "explain_job": {"job": "order-1"},
    "why_not_running": {"job": "order-1"},
    "explain_failure_group": {"fingerprint": "none"},
    "preview_retries": {"kind": "greet"},
    "requeue": {"search": "kind:none", "why": WHY},
    "cancel": {"search": "kind:none", "why": WHY},
    "run_now": {"search": "kind:none", "why": WHY},
    "pause": {"queue": "none", "why": WHY},
    "resume": {"queue": "none", "why": WHY},
    "trigger_schedule": {"name": "none", "why": WHY},
    "answer_approval": {"job": "order-1", "question": "go", "approved": True, "why": WHY},
}
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "raw", "version": "1"},
    },
}
ACCEPT = {"accept": "application/json, text/event-stream"}


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """One server for all tests of this module."""
    app = make_app(f"sqlite:///{tmp_path_factory.mktemp('mcp') / 'desk.db'}")
    with serving(app, mcp=McpSettings(commands=True)) as running:
        asyncio.run(_seed(app.url))
        yield running


async def _seed(url: str) -> None:
    store = store_for(url)
    await store.open()
    await enqueue(store, ref="order-1", delay=HOUR)
    await store.close()


@asynccontextmanager
async def agent(running: Running, token: str | None, **more: Any) -> AsyncIterator[Client]:
    """A client with this token."""
    headers = {} if token is None else {"authorization": f"Bearer {token}"}
    async with httpx2.AsyncClient(headers=headers, timeout=30) as http:
        client = Client(
            streamable_http_client(f"{running.address}/mcp", http_client=http),
            client_info=Implementation(name="claude-code", version="1"),
            read_timeout_seconds=30,
            **more,
        )
        async with client:
            yield client


@pytest.mark.slow
@pytest.mark.parametrize(
    ("scope", "mode"), [("read", "auto"), ("operate", LEGACY), ("admin", "auto"), (None, LEGACY), (None, "auto")]
)
async def test_each_tool_asks_for_its_scope(running: Running, scope: str | None, mode: str) -> None:
    """A token of too small a scope gets no command, and neither does a caller without one, on this machine."""
    async with agent(running, None if scope is None else running.tokens[scope], mode=mode) as client:
        for spec in TOOLS:
            result = await client.call_tool(spec.name, ARGUMENTS.get(spec.name, {}))
            text = getattr(result.content[0], "text", "")
            may = not spec.is_command or scope in {"operate", "admin"}
            assert (f"{spec.name} needs the scope" in text) is not may, text
            if not spec.is_command and spec.name != "explain_failure_group":
                assert not result.is_error, text


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["auto", LEGACY])
async def test_a_command_over_http_is_confirmed_and_audited_under_agent_and_token(running: Running, mode: str) -> None:
    person = Person()
    async with agent(running, running.tokens["operate"], mode=mode, elicitation_callback=person) as client:
        planned = await ask(client, "pause", queue=f"q-{mode}", duration="1h", why=WHY)
        call = {"queue": f"q-{mode}", "duration": "1h", "why": WHY, "dry_run_id": planned["dry_run_id"]}
        async with agent(running, running.tokens["admin"], mode=mode) as other:
            assert "another call" in await refused(other, "pause", **call)
        await ask(client, "pause", **call)
        assert len(person.asked) == 1
        [pause] = [each for each in (await ask(client, "gates"))["pauses"] if each["queue"] == f"q-{mode}"]
        assert pause["by"] == "mcp:claude-code@test operate"
        [entry] = (await ask(client, "audit", action="pause", limit=1))["entries"]
        assert (entry["actor"], entry["source"]) == ("mcp:claude-code@test operate", "mcp 127.0.0.1")


@pytest.mark.slow
async def test_the_rules_of_access_hold(running: Running) -> None:
    """Hosts, origins and tokens are checked before a request reaches the SDK; a session belongs to its caller."""
    address = f"{running.address}/mcp"
    async with httpx.AsyncClient(headers=ACCEPT, timeout=30) as client:
        for headers, status in (
            ({"host": "evil.example"}, 421),
            ({"origin": "https://evil.example"}, 403),
            ({"origin": "http://localhost:3000"}, 403),
            ({"sec-fetch-site": "cross-site"}, 403),
            ({"authorization": "Bearer pdr_wrong"}, 401),
            ({"authorization": "Basic YTpi"}, 401),
            ({"x-forwarded-for": "10.0.0.1"}, 401),  # a proxy stands between, so the caller is not local
            ({"content-type": "text/plain"}, 400),
        ):
            answer = await client.post(address, json=INITIALIZE, headers=headers)
            assert answer.status_code == status, (headers, answer.text)
        assert (await client.post(f"{address}?token=x", json=INITIALIZE)).status_code == 400
        opened = await client.post(
            address, json=INITIALIZE, headers={"authorization": f"Bearer {running.tokens['read']}"}
        )
        assert opened.status_code == 200
        session = {"mcp-session-id": opened.headers["mcp-session-id"]}
        listing = {"jsonrpc": "2.0", "id": 2, "method": "tools/list", "params": {}}
        for token, status in ((running.tokens["operate"], 404), (None, 404), (running.tokens["read"], 200)):
            known = {} if token is None else {"authorization": f"Bearer {token}"}
            answer = await client.post(address, json=listing, headers={**session, **known})
            assert answer.status_code == status, answer.text


@pytest.mark.slow
async def test_a_session_cookie_of_a_browser_opens_no_door_for_agents(running: Running) -> None:
    async with httpx.AsyncClient(headers=ACCEPT, timeout=30) as client:
        answer = await client.post(
            f"{running.address}/mcp",
            json=INITIALIZE,
            headers={"cookie": "perdure_session=pds_x", "x-forwarded-for": "10.0.0.1"},
        )
    assert answer.status_code == 401
    assert "Bearer" in answer.headers["www-authenticate"]


@pytest.mark.slow
async def test_a_caller_who_opens_too_many_sessions_loses_the_oldest_and_locks_no_other_out(running: Running) -> None:
    """Clients that go without ending their session would otherwise take all there are, for half an hour."""
    address = f"{running.address}/mcp/"  # as some clients write it
    reader = {"authorization": f"Bearer {running.tokens['read']}"}
    listing = {"jsonrpc": "2.0", "id": 2, "method": "tools/list", "params": {}}
    async with httpx.AsyncClient(headers=ACCEPT, timeout=30) as client:
        opened = []
        for number in range(SESSIONS_PER_CALLER + 3):
            answer = await client.post(address, json=INITIALIZE, headers=reader)
            assert answer.status_code == 200
            opened.append({"mcp-session-id": answer.headers["mcp-session-id"]})
            if number == SESSIONS_PER_CALLER - 1:  # the first one is used again, so that others are older
                await client.post(address, json=listing, headers=reader | opened[0])
        known = [(await client.post(address, json=listing, headers=reader | one)).status_code for one in opened]
    assert known == [200, 404, 404, 404, *[200] * (SESSIONS_PER_CALLER - 1)]
    assert SESSIONS_PER_CALLER * 4 < SESSIONS_LIMIT
    async with agent(running, running.tokens["operate"], mode=LEGACY) as other:
        await ask(other, "overview")


@pytest.mark.slow
async def test_a_refused_agent_is_reported_why(running: Running) -> None:
    """A client of agents shows errors of JSON-RPC, and of any other answer only its status."""
    for mode in ("auto", LEGACY):
        with pytest.RaisesGroup(MCPError, allow_unwrapped=True, flatten_subgroups=True) as refusal:
            async with agent(running, "pdr_wrong", mode=mode):
                pass
        assert "The token is unknown, revoked or expired" in str(refusal.value.exceptions)


@pytest.mark.parametrize("url", ["postgresql://127.0.0.1:1/none", "sqlite:///{folder}/none.db"])
async def test_an_agent_is_reported_that_the_database_is_away(url: str, tmp_path: Path) -> None:
    (tmp_path / "none.db").write_text("no database " * 1_000)
    async with asgi(url.format(folder=tmp_path), mcp=McpSettings()) as desk:
        transport = httpx.ASGITransport(desk, client=("127.0.0.1", 5000))
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8484", headers=ACCEPT) as client:
            call = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "overview"}}
            answer = await client.post("/mcp", json=call, headers={"authorization": "Bearer pdr_any"})
    assert (answer.status_code, answer.headers["content-type"]) == (503, "application/json")
    error = answer.json()["error"]
    assert error["data"] == {"status": 503}
    assert "127.0.0.1" in error["message"] or "none.db" in error["message"]


async def test_a_desk_without_agents_says_how_to_switch_them_on(tmp_path: Path) -> None:
    app = make_app(f"sqlite:///{tmp_path / 'desk.db'}")
    async with app, asgi(app) as desk:
        transport = httpx.ASGITransport(desk, client=("127.0.0.1", 5000))
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8484") as client:
            answer = await client.post("/mcp", json=INITIALIZE)
    assert answer.status_code == 404
    assert "--mcp" in answer.json()["error"]["message"]


async def test_a_read_only_desk_offers_no_commands(tmp_path: Path) -> None:
    app = make_app(f"sqlite:///{tmp_path / 'desk.db'}")
    async with app:
        desk = asgi(app, read_only=True, mcp=McpSettings(commands=True))
        assert desk._agents is not None
        assert "cancel" not in {tool.name for tool in await desk._agents._server.list_tools()}


@pytest.mark.slow
async def test_agents_who_listen_do_not_hold_up_a_stop(tmp_path: Path) -> None:
    server = serving(make_app(f"sqlite:///{tmp_path / 'desk.db'}"), mcp=McpSettings())
    address = f"{server.__enter__().address}/mcp"
    async with httpx.AsyncClient(headers=ACCEPT, timeout=30) as client:
        opened = await client.post(address, json=INITIALIZE)
        session = {"mcp-session-id": opened.headers["mcp-session-id"]}
        await client.post(address, json={"jsonrpc": "2.0", "method": "notifications/initialized"}, headers=session)
        async with client.stream("GET", address, headers=session) as listening:
            assert listening.status_code == 200
            began = time.monotonic()
            stopping = asyncio.create_task(asyncio.to_thread(server.__exit__, None, None, None))
            assert [chunk async for chunk in listening.aiter_bytes()] == [], "the stream ends in good order"
            await stopping
            assert time.monotonic() - began < 10

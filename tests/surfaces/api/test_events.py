"""The event log over HTTP: pages and streams, with real connections that break and come back."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from tests.support.web.http_server import Running, serving
from tests.support.web.http_site import make_app

from perdure import App

LOG = "/api/v1/events/log"
EVENTS = "/api/v1/events"
STREAM = "/api/v1/events/stream"


@pytest.fixture
def app(engine_url: str) -> App:
    return make_app(engine_url)


@pytest.fixture
def running(app: App) -> Iterator[Running]:
    with serving(app) as running:
        yield running


def client(running: Running, scope: str = "admin") -> httpx.Client:
    headers = {"authorization": f"Bearer {running.tokens[scope]}"}
    return httpx.Client(base_url=running.address, headers=headers, timeout=20)


def finish(http: httpx.Client, count: int) -> list[str]:
    """Let so many jobs end."""
    ids = []
    for _ in range(count):
        made = http.post("/api/v1/jobs", json={"kind": "greet", "args": {"name": "ada"}}).json()
        ids.append(made["job"]["id"] if "job" in made else made["id"])
        http.post(f"/api/v1/jobs/{ids[-1]}/cancel", json={}).raise_for_status()
    return ids


class Reader:
    """Reads a stream of server-sent events as a browser does."""

    def __init__(self, response: httpx.Response) -> None:
        self._lines = response.iter_lines()
        self.last_id = ""

    def messages(self) -> Iterator[tuple[str, Any]]:
        name, data = "", ""
        for line in self._lines:
            field, _, value = line.partition(": ")
            if field == "id":
                self.last_id = value
            elif field == "event":
                name = value
            elif field == "data":
                data += value
            elif not line:
                if data:
                    yield name, json.loads(data)
                name, data = "", ""

    def take(self, count: int) -> list[dict[str, Any]]:
        found = []
        for _, event in self.messages():
            found.append(event)
            if len(found) == count:
                break
        return found


def test_pages_go_on_from_a_cursor_and_say_when_there_is_none(running: Running) -> None:
    with client(running) as http:
        assert http.get(EVENTS).status_code == 409
        assert http.get(STREAM).status_code == 409
        state = http.put(LOG, json={"keep": "1h", "why": "the shop follows"}).json()["log"]
        ids = finish(http, 3)
        first = http.get(EVENTS, params={"limit": 2, "after": state["end"]}).json()
        assert [event["subject"] for event in first["events"]] == ids[:2]
        assert first["more"] is True
        rest = http.get(EVENTS, params={"after": first["next"]}).json()
        assert [event["subject"] for event in rest["events"]] == ids[2:]
        assert http.get(EVENTS, params={"types": "job.died,job.succeeded"}).json()["events"] == []
        bad = http.get(EVENTS, params={"after": "yesterday"})
        assert (bad.status_code, bad.json()["field"]) == (422, "after")
        bad = http.get(EVENTS, params={"types": "job.exploded"})
        assert (bad.status_code, bad.json()["field"]) == (422, "types")
        assert "job.succeeded" in bad.json()["detail"]
        gone = http.get(EVENTS, params={"after": "0-0"})
        assert (gone.status_code, gone.json()["type"]) == (410, "urn:perdure:problem:events-gone")
        assert http.get(STREAM, headers={"last-event-id": "0-0"}).status_code == 410
        http.delete(LOG).raise_for_status()
        assert http.get(EVENTS).status_code == 409
    with client(running, "operate") as http:
        assert http.put(LOG, json={}).status_code == 403


def test_a_follower_that_reconnects_misses_nothing_and_gets_nothing_twice(running: Running) -> None:
    with client(running) as http:
        begin = http.put(LOG, json={}).json()["log"]["end"]
        ids = finish(http, 4)
        with http.stream("GET", STREAM, params={"after": begin}) as response:
            assert response.headers["content-type"].startswith("text/event-stream")
            reader = Reader(response)
            seen = reader.take(2)
            last = reader.last_id
        assert last == seen[-1]["id"]
        ids += finish(http, 3)
        with http.stream("GET", STREAM, params={"after": begin}, headers={"last-event-id": last}) as response:
            seen += Reader(response).take(5)
        assert [event["subject"] for event in seen] == ids
        assert {event["type"] for event in seen} == {"job.cancelled"}


def test_a_stream_without_cursor_begins_now_and_its_filter_moves_the_cursor_too(running: Running) -> None:
    with client(running) as http, client(running) as other:
        http.put(LOG, json={}).raise_for_status()
        finish(http, 1)
        with http.stream("GET", STREAM, params={"kind": "send"}) as response:
            reader = Reader(response)
            finish(other, 2)
            wanted = other.post("/api/v1/jobs", json={"kind": "send", "args": {"to": []}}).json()
            wanted_id = wanted["job"]["id"] if "job" in wanted else wanted["id"]
            other.post(f"/api/v1/jobs/{wanted_id}/cancel", json={})
            [event] = reader.take(1)
        assert event["subject"] == wanted_id
        assert reader.last_id == event["id"]


def test_a_revoked_token_ends_the_stream_within_seconds(running: Running) -> None:
    with client(running) as http, client(running, "read") as reading:
        http.put(LOG, json={}).raise_for_status()
        with reading.stream("GET", STREAM) as response:
            http.delete("/api/v1/tokens/test read").raise_for_status()
            [(name, said)] = list(Reader(response).messages())
        assert (name, "revoked" in said["why"]) == ("end", True)
        assert reading.get(EVENTS).status_code == 401


def test_a_stop_does_not_wait_for_streams(app: App) -> None:
    async def read(running: Running) -> None:
        with client(running) as http:
            http.put(LOG, json={}).raise_for_status()
            with http.stream("GET", STREAM) as response:
                next(response.iter_lines())

    with serving(app) as running:
        asyncio.run(read(running))


def test_webhooks_over_http(running: Running) -> None:
    path = "/api/v1/webhooks/crm"
    with client(running) as http:
        made = http.put(path, json={"url": "https://crm.example/hook?key=T0K3N", "events": ["job.died"]}).json()
        assert made["secret"].startswith("whs_")
        shown = http.get(path).text + http.get("/api/v1/webhooks").text + http.get("/api/v1/audit").text
        assert made["secret"] not in shown
        assert "T0K3N" not in shown
        assert "crm.example/hook?***" in shown
        assert http.put(path, json={"url": "gopher://x/"}).status_code == 422
        assert http.post(f"{path}/pause", json={"why": "moves"}).json()["paused_at"] is not None
        assert http.post(f"{path}/resume", json={}).json()["paused_at"] is None
        assert http.post(f"{path}/test", json={}).status_code == 201
        assert http.post(f"{path}/secret", json={}).json()["secret"] != made["secret"]
        assert http.delete(LOG).status_code == 409
        assert http.delete(path).status_code == 204
        assert http.delete(path).status_code == 404
    with client(running, "operate") as http:
        assert http.put(path, json={"url": "https://crm.example/"}).status_code == 403

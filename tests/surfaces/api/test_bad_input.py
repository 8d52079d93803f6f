"""Input that makes no sense, hostile input, and a database that is away: a clear answer, and nothing lost."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.support.web.http_site import client_of, make_app, token_of
from tests.support.web.openapi_answers import check_answer

from perdure.errors import SchemaError, StoreRefused, StoreTimeout, StoreUnavailable
from perdure.surfaces.api.decoding import BODY_LIMIT_BYTES
from perdure.surfaces.server.site import Site

JOBS = "/api/v1/jobs"
OVERVIEW = "/api/v1/overview"
JSON = {"content-type": "application/json"}


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("limit=1000000000", "limit"),
        ("limit=0", "limit"),
        ("limit=many", "limit"),
        ("limit=5&limit=6", "limit"),
        ("colour=red", "colour"),
        ("state=lost", "state"),
        ("kind=%00", "kind"),
        ("kind=", "kind"),
        ("cursor=AAAA", "cursor"),
        ("cursor=%C3%A9", "cursor"),
        ("cursor=" + "A" * 600, "cursor"),
        ("created_after=2026-01-01", "created_after"),
        ("created_after=2026-01-01T00:00:00", "created_after"),
        ("mark=x&marked=false", "mark"),
        ("created_after=2026", "created_after"),
        ("finished_before=-1e9", "finished_before"),
        ("id=7", "id"),
        ("id=", "id"),
        ("created_after=2026-01-02T00:00:00Z&created_before=2026-01-01T00:00:00Z", "created_after"),
        ("search=colour:red", None),
        ("search=" + "x" * 5000, None),
    ],
)
async def test_a_query_that_makes_no_sense_is_refused_by_name(
    client: httpx.AsyncClient, query: str, field: str | None
) -> None:
    answer = await client.get(f"{JOBS}?{query}")
    assert (answer.status_code, answer.headers["content-type"]) == (422, "application/problem+json"), answer.text
    assert field is None or answer.json()["field"] == field


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"{", 400),
        (b"not json", 400),
        (b"[1]", 400),
        (b"NaN", 400),
        (b"\xff\xfe", 400),
        ('{"kind": "gr\xfc\xdfe"}'.encode("latin-1"), 400),
        (b"[" * 100_000, 400),
        (b'{"kind": "greet", "args": ' + b'{"a":' * 5_000, 400),
        (b'{"kind": 7}', 422),
        (b'{"kind": "greet", "colour": "red"}', 422),
        (b"{}", 422),
        (b'{"kind": "greet", "args": {"name": "x"}, "priority": 1e400}', 400),
        (b'{"kind": "greet", "args": {"name": "x"}, "priority": 99999999999999999999999}', 422),
        (b'{"kind": "greet", "args": {"name": "x"}, "delay": "soon"}', 422),
        (b'{"kind": "greet", "args": {"name": "x"}, "ref": "\\u0000"}', 422),
        (b'{"kind": "greet", "args": {"name": "x"}, "run_at": "9999-12-31T23:59:59-23:59"}', 422),
    ],
)
async def test_a_body_that_makes_no_sense_is_refused(client: httpx.AsyncClient, body: bytes, status: int) -> None:
    answer = await client.post(JOBS, content=body, headers=JSON)
    assert answer.status_code == status, answer.text
    assert answer.json()["detail"]


@pytest.mark.parametrize(
    ("query", "detail", "value"),
    [
        ("jobs?limit=1000000000", "limit must be a whole number from 1 to 500, got 1000000000", "1000000000"),
        ("jobs?marked=maybe", "marked must be true or false, got 'maybe'", "maybe"),
        ("counts?by=colour", "by[0] must be one of kind, queue, state, got ['colour']", ["colour"]),
        (
            "audit?since=2026",
            "since must be a time with its zone, such as 2026-03-01T09:00:00Z, got '2026'",
            "2026",
        ),
    ],
)
async def test_a_refusal_says_what_is_allowed(client: httpx.AsyncClient, query: str, detail: str, value: Any) -> None:
    problem = (await client.get(f"/api/v1/{query}")).json()
    assert (problem["detail"], problem["value"]) == (detail, value)


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("PUT", "webhooks/x", {"url": "https://example.com/", "secret": ["hunter2"]}),
        ("POST", "pauses", {"kind": "greet", "args": {"password": "hunter2"}}),
        ("POST", "pauses", {"kind": "greet", "args": {"user": {"password": "hunter2"}}}),
        ("POST", "jobs", {"kind": "greet", "meta": ["https://ada:hunter2@example.com/"]}),
        ("POST", "jobs", {"kind": "greet", "args": {"name": "x"}, "meta": {"token": "hunter2" + "x" * 20_000}}),
        ("POST", "jobs", [{"api_key": "hunter2"}]),
    ],
)
async def test_a_refusal_repeats_no_secret(client: httpx.AsyncClient, method: str, path: str, body: Any) -> None:
    answer = await client.request(method, f"/api/v1/{path}", json=body)
    assert answer.status_code in {400, 422}
    assert "hunter2" not in answer.text


async def test_an_event_shows_no_secret(client: httpx.AsyncClient) -> None:
    """Also the one that was emitted first, by somebody else."""
    for _ in range(2):
        answer = await client.post(
            "/api/v1/events", json={"event": "paid:1", "payload": {"token": "hunter2", "sum": 3}}
        )
        assert answer.json()["payload"] == {"token": "***", "sum": 3}


@pytest.mark.parametrize(
    ("path", "field"),
    [
        ("failure-groups?state=ready", "state"),
        ("failure-groups?search=state:ready", "state"),
        ("approvals?state=dead", "state"),
        ("alerts?rule=%00", "rule"),
        ("schedules/%00", "name"),
        ("bulk/%00", "id"),
        ("alerts/notices/%00", "id"),
    ],
)
async def test_what_can_match_nothing_is_refused_by_name(client: httpx.AsyncClient, path: str, field: str) -> None:
    answer = await client.get(f"/api/v1/{path}")
    assert (answer.status_code, answer.json()["field"]) == (422, field), answer.text


@pytest.mark.parametrize(
    ("path", "body", "field"),
    [
        ("commands/mark", {"ids": ["x"]}, "mark"),
        ("commands/cancel", {"ids": ["x"], "mark": "seen"}, "mark"),
        ("commands/cancel", {"ids": ["x"], "run_at": "2026-01-01T00:00:00Z"}, "run_at"),
        ("bulk/plan", {"action": "mark"}, "mark"),
        ("bulk/plan", {"action": "cancel", "mark": "seen"}, "mark"),
        ("bulk/plan", {"action": "requeue", "run_at": "2026-01-01T00:00:00Z"}, "run_at"),
        ("breakers/smtp/open", {"duration": "0s"}, "duration"),
        ("schedules/x/backfill", {"start": "0001-01-01T00:00:00Z", "end": "2026-01-01T00:00:00Z"}, "start"),
    ],
)
async def test_a_command_without_sense_is_refused_by_name(
    client: httpx.AsyncClient, path: str, body: dict[str, Any], field: str
) -> None:
    """A mark that is forgotten must not remove those that there are."""
    await client.put("/api/v1/schedules/x", json={"kind": "greet", "cron": "@hourly", "args": {"name": "n"}})
    answer = await client.post(f"/api/v1/{path}", json=body)
    assert (answer.status_code, answer.json()["field"]) == (422, field), answer.text


async def test_answers_of_a_desk_without_the_app_are_described(client: httpx.AsyncClient, site: Site) -> None:
    job = (await client.post(JOBS, json={"kind": "greet", "args": {"name": "x"}})).json()["id"]
    async with Site(site.backing.url) as bare, client_of(bare, await token_of(site, "read")) as other:
        other.event_hooks["response"].append(check_answer)
        assert (await other.get(f"{JOBS}/{job}/preview")).status_code == 409
        assert (await other.get("/api/v1/audit", params={"job": "none"})).status_code == 404


async def test_a_body_must_be_declared_as_json_and_not_too_large(client: httpx.AsyncClient) -> None:
    body = json.dumps({"kind": "greet", "args": {"name": "x"}})
    for declared in ({}, {"content-type": "text/plain"}, {"content-type": "application/x-www-form-urlencoded"}):
        assert (await client.post(JOBS, content=body, headers=declared)).status_code == 415
    large = json.dumps({"kind": "greet", "args": {"name": "x" * BODY_LIMIT_BYTES}})
    assert (await client.post(JOBS, content=large, headers=JSON)).status_code == 413
    at_most = json.dumps({"kind": "greet", "args": {"name": "x" * 70_000}})
    assert (await client.post(JOBS, content=at_most, headers=JSON)).status_code == 422


async def test_hostile_text_goes_out_as_it_came(client: httpx.AsyncClient) -> None:
    name = "<script>alert(1)</script>\x1b[31m\u202e'; DROP TABLE job; --\ud83d\ude00".encode("utf-16", "surrogatepass")
    text = name.decode("utf-16")
    made = await client.post(JOBS, json={"kind": "greet", "args": {"name": text}, "tags": ["<b>"]})
    assert made.status_code == 201
    shown = await client.get(f"{JOBS}/{made.json()['id']}")
    assert shown.json()["job"]["args"] == {"name": text}
    assert shown.headers["content-type"] == "application/json"
    assert shown.headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize(
    "path", ["", "/", "/nothing", "/jobs/", "/jobs//why", "/jobs/a/b/c/d", "/jobs/%2E%2E/why", "/%00"]
)
async def test_paths_that_lead_nowhere(client: httpx.AsyncClient, path: str) -> None:
    answer = await client.get(f"/api/v1{path}")
    assert answer.status_code in {404, 422}
    assert answer.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (StoreUnavailable("gone"), 503),
        (StoreRefused("read-only"), 503),
        (SchemaError("too new"), 503),
        (StoreTimeout("took more than 2 s"), 504),
        (TimeoutError(), 504),
        (RuntimeError("a secret of ours"), 500),
    ],
)
async def test_what_goes_wrong_inside_is_reported_and_recovers(
    client: httpx.AsyncClient, site: Site, monkeypatch: pytest.MonkeyPatch, error: Exception, status: int
) -> None:
    store = await site.backing.store()

    async def fail(*_: Any, **__: Any) -> None:
        raise error

    with monkeypatch.context() as patched:
        patched.setattr(store, "counts", fail)
        answer = await client.get(OVERVIEW)
    assert answer.status_code == status
    assert ("retry-after" in answer.headers) is (status in {503, 504})
    assert "secret" not in answer.text
    assert (await client.get(OVERVIEW)).status_code == 200


async def test_a_desk_starts_while_its_database_is_away(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    app = make_app(f"sqlite:///{tmp_path}/a.db")
    async with app:
        site = Site(app)
        here = site.backing._stores.here

        async def away() -> None:
            raise StoreUnavailable("no route to host")

        monkeypatch.setattr(site.backing._stores, "here", away)
        async with site, client_of(site) as client:
            assert (await client.get("/healthz")).status_code == 200
            assert (await client.get("/readyz")).json()["status"] == "failed"
            answer = await client.get("/", headers={"accept": "text/html"})
            assert (answer.status_code, "no route to host" in answer.text) == (503, True)
            assert (await client.get(JOBS)).status_code == 503
            monkeypatch.setattr(site.backing._stores, "here", here)
            site.backing._failed = None
            assert (await client.get("/", headers={"accept": "text/html"})).status_code == 200
            assert (await client.get(JOBS)).status_code == 200
            assert site.bulk is not None


async def test_a_read_only_desk_writes_nothing(engine_url: str) -> None:
    """On PostgreSQL the session itself refuses writes, as a standby does."""
    async with make_app(engine_url) as app:
        await app.job_named("greet").enqueue(name="x")
    url = engine_url
    if url.startswith("postgresql"):
        url += "&options=-c%20default_transaction_read_only%3Don"
    async with Site(url, read_only=True) as site, client_of(site) as client:
        for path in (
            "/",
            f"{JOBS}?limit=1",
            "/api/v1/overview",
            "/api/v1/queues",
            "/api/v1/attention",
            "/readyz",
        ):
            assert (await client.get(path, headers={"accept": "text/html"})).status_code == 200, path
        assert site.bulk is None


async def test_diagnostics_are_for_admins(client: httpx.AsyncClient, site: Site) -> None:
    """C13: stacks with waits, heap, a CPU profile of n seconds, waits for locks, and what has blocked the process."""
    stacks = (await client.get("/api/v1/diagnostics/stacks")).json()
    assert any("awaits" in task for task in stacks["tasks"])
    assert (await client.get("/api/v1/diagnostics/heap", params={"limit": 3})).json()["entries"]
    profile = (await client.get("/api/v1/diagnostics/profile", params={"seconds": 0.2})).json()
    assert (profile["seconds"] >= 0.2, profile["samples"] > 0) == (True, True)
    assert (await client.get("/api/v1/diagnostics/profile", params={"seconds": 60})).status_code == 422
    locks = (await client.get("/api/v1/diagnostics/locks", params={"seconds": 0.1})).json()
    assert (locks["seconds"] >= 0.1, locks["samples"] > 0) == (True, True)
    assert (await client.get("/api/v1/diagnostics/locks", params={"seconds": 60})).status_code == 422
    assert (await client.get("/api/v1/diagnostics/contention")).json()["total"] >= 0
    async with client_of(site, await token_of(site, "operate")) as operator:
        assert (await operator.get("/api/v1/diagnostics/heap")).status_code == 403


async def test_what_a_command_would_not_read_is_refused_before_it_is_done(client: httpx.AsyncClient) -> None:
    """A `dry_run` in the wrong place, or a version that is not compared, would look as if it had been heeded."""
    job = (await client.post(JOBS, json={"kind": "greet", "args": {"name": "x"}, "delay": "1h"})).json()["id"]
    dry = await client.post(f"{JOBS}/{job}/cancel?dry_run=true")
    assert (dry.status_code, dry.json()["field"]) == (422, "dry_run")
    assert (await client.get(f"{JOBS}/{job}")).json()["job"]["state"] == "scheduled"
    assert (await client.get("/api/v1/workers?state=dead")).status_code == 422
    pause = "/api/v1/queues/mail/pause"
    assert (await client.post(pause, headers={"if-match": '"1"'})).json()["type"] == "urn:perdure:problem:no-version"
    assert (await client.post(pause, json={"revision": "1"})).json()["field"] == "revision"
    assert (await client.get("/api/v1/pauses")).json() == {"pauses": []}


async def test_a_cursor_of_the_trail_of_another_job_is_refused(client: httpx.AsyncClient) -> None:
    made = [await client.post(JOBS, json={"kind": "greet", "args": {"name": "x"}, "delay": "1h"}) for _ in range(2)]
    own, other = (f"{JOBS}/{one.json()['id']}" for one in made)
    await client.post(f"{own}/mark", json={"mark": "seen"})
    page = (await client.get(f"{own}/audit", params={"limit": 1})).json()
    assert [entry["action"] for entry in page["entries"]] == ["mark"]
    rest = (await client.get(f"{own}/audit", params={"limit": 1, "cursor": page["next"]})).json()
    assert ([entry["action"] for entry in rest["entries"]], rest["next"]) == (["enqueue"], None)
    refused = await client.get(f"{other}/audit", params={"cursor": page["next"]})
    assert (refused.status_code, refused.json()["field"]) == (422, "cursor")

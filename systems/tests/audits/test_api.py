"""E8, E10: the API with its codes and its token, and the health of the service."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from pathlib import Path

import httpx
import pytest
from structlog.testing import capture_logs
from systems.tests.engines import on_sqlite

from perdure import JobFilter
from perdure.desk import asgi
from perdure.testing import Sandbox
from perdure_systems.audits.jobs import app, audit
from perdure_systems.audits.standins import Outside, QuickInstruments
from perdure_systems.audits.system import SYSTEM
from perdure_systems.audits.web import health as health_module
from perdure_systems.audits.web.health import watch_health
from perdure_systems.kit.web import api

Setting = Callable[[str, str], None]
TOKEN = {"Authorization": "Bearer the-token"}


@pytest.fixture
async def client(box: Sandbox) -> AsyncIterator[httpx.AsyncClient]:
    transport = httpx.ASGITransport(app=api(SYSTEM.routes))
    async with httpx.AsyncClient(transport=transport, base_url="http://audits", headers=TOKEN) as one:
        yield one


async def jobs() -> int:
    return (await (await app.desk("test")).count(JobFilter())).jobs


async def test_e8_a_scan_is_accepted_and_its_audit_is_read(
    box: Sandbox, client: httpx.AsyncClient, outside: Outside, quick: QuickInstruments
) -> None:
    answer = await client.post("/api/v1/scan", json={"url": outside.page.upper().replace("HTTP", "http")})
    assert answer.status_code == 202
    body = answer.json()
    assert (body["status"], body["created"], body["url"]) == ("pending", True, outside.page)
    assert answer.headers["location"] == f"/api/v1/audits/{body['id']}"
    again = await client.post("/api/v1/scan", json={"url": outside.page, "strategy": "mobile"})
    assert (again.status_code, again.json()["id"], again.json()["created"]) == (202, body["id"], False)

    await box.drain()
    shown = (await client.get(answer.headers["location"])).json()
    assert shown["status"] == "completed"
    assert [step["name"] for step in shown["processing_steps"]] == ["pagespeed", "screenshots", "pdf", "webhook"]
    assert shown["pagespeed_data"]["scores"]["seo"] == 92
    assert shown["screenshots_data"]["taken"]["mobile"]["width"] == 375
    assert shown["webhooks"][0]["deliveries"][0]["status_code"] == 200
    report = await client.get(shown["report_path"])
    assert (report.headers["content-type"], report.content[:4]) == ("application/pdf", b"%PDF")
    picture = await client.get(f"/api/v1/audits/{body['id']}/screenshots/desktop.jpg")
    assert picture.headers["content-type"] == "image/jpeg"
    figures = (await client.get("/api/v1/stats")).json()
    assert (figures["audits"]["completed"], figures["webhooks"]["delivered"]) == (1, 1)
    assert (await client.get("/api/v1/audits/stats")).json() == figures
    [row] = (await client.get("/api/v1/audits?status=completed")).json()["audits"]
    assert row["id"] == body["id"]
    assert (await client.get("/api/v1/audits?status=failed")).json()["audits"] == []


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/api/v1/scan"),
        ("GET", "/api/v1/audits"),
        ("GET", "/api/v1/audits/x"),
        ("GET", "/api/v1/audits/x/report.pdf"),
        ("GET", "/api/v1/audits/x/screenshots/mobile.jpg"),
        ("POST", "/api/v1/audits/x/retry"),
        ("GET", "/api/v1/stats"),
        ("GET", "/api/v1/webhooks"),
        ("GET", "/api/v1/webhooks/x"),
        ("POST", "/api/v1/webhooks/x/retry"),
        ("POST", "/api/v1/webhooks/retry-failed"),
        ("POST", "/api/v1/webhooks/prune"),
    ],
)
async def test_e8_without_the_token_nothing_is_answered_or_changed(method: str, path: str) -> None:
    transport = httpx.ASGITransport(app=api(SYSTEM.routes))
    async with httpx.AsyncClient(transport=transport, base_url="http://audits") as client:
        for header in ("", "Bearer wrong", "Basic the-token", "the-token"):
            headers = {"Authorization": header}
            answer = await client.request(method, path, headers=headers, content=b'{"url": "http://x/"}')
            assert (answer.status_code, answer.headers["www-authenticate"]) == (401, "Bearer")


@on_sqlite
async def test_e8_without_a_token_in_the_settings_the_api_refuses_every_caller(
    client: httpx.AsyncClient, settings: Setting
) -> None:
    settings("AUDITS_API_TOKEN", "")
    answer = await client.get("/api/v1/stats", headers={"Authorization": "Bearer "})
    assert (answer.status_code, "AUDITS_API_TOKEN is not set" in answer.json()["detail"]) == (503, True)


BAD_INPUT: list[tuple[bytes, str | None, str]] = [
    (b"{", "body", "body must be JSON"),
    (b"{}", "url", "missing required field `url`"),
    (b'{"url": 7}', "url", "Expected `str`, got `int`"),
    (b'{"url": "http://127.0.0.1/", "strategy": "tablet"}', "strategy", "Invalid enum value 'tablet'"),
    (b'{"url": "http://127.0.0.1/", "strateggy": "mobile"}', None, "unknown field `strateggy`"),
    (b'{"url": "ftp://127.0.0.1/"}', "url", "url must be an http or https address, got 'ftp://127.0.0.1/'"),
    (b'{"url": "javascript:alert(1)"}', "url", "url must be an http or https address"),
    (b'{"url": "file:///etc/passwd"}', "url", "url must be an http or https address"),
    (b'{"url": "http://user:secret@127.0.0.1/"}', "url", "url must hold no user name or password"),
    (b'{"url": "http://127.0.0.1:0/"}', "url", "url must name a port from 1 to 65535, got 0"),
    (b'{"url": "http://127.0.0.1:99999/"}', "url", "url must be an http or https address"),
    (b'{"url": "http://no.such.host.invalid/"}', "url", "'no.such.host.invalid' cannot be resolved"),
    (b'{"url": "http://127.0.0.1/", "webhook_url": "gopher://x/"}', "webhook_url", "webhook_url must be an http"),
]


@on_sqlite
async def test_e8_bad_input_is_refused_by_name_and_nothing_is_stored(client: httpx.AsyncClient) -> None:
    for body, field, detail in BAD_INPUT:
        answer = await client.post("/api/v1/scan", content=body)
        assert answer.status_code == 400
        assert detail in answer.json()["detail"]
        assert field is None or answer.json()["field"] == field
    assert await jobs() == 0


@on_sqlite
async def test_every_audit_is_on_one_page_and_on_one_alone(client: httpx.AsyncClient) -> None:
    made = {(await audit.enqueue(f"http://127.0.0.1/{number}")).id for number in range(11)}
    for path in ("/api/v1/audits", "/"):
        shown = [(await client.get(f"{path}?page={number}&per_page=5")).text for number in (1, 2, 3, 4)]
        assert [sum(one in text for one in made) for text in shown] == [5, 5, 1, 0]
        assert all(sum(one in text for text in shown) == 1 for one in made)
    assert [">Older" in (await client.get(f"/?page={number}&per_page=5")).text for number in (1, 2, 3)] == [
        True,
        True,
        False,
    ]


@on_sqlite
async def test_the_first_page_says_what_to_do_when_there_is_nothing_yet(client: httpx.AsyncClient) -> None:
    assert "No audits yet" in (await client.get("/")).text


@on_sqlite
async def test_e8_what_is_not_there_is_a_404_and_what_cannot_be_done_a_409(
    box: Sandbox, client: httpx.AsyncClient, outside: Outside, quick: QuickInstruments
) -> None:
    for path in (
        "audits/x",
        "audits/%00",
        f"audits/{'x' * 1_000}",
        "webhooks/%00",
        f"audits/{'0' * 8}-0000-7000-8000-{'0' * 12}",
        "webhooks/x",
    ):
        answer = await client.get(f"/api/v1/{path}")
        assert (answer.status_code, "there is no" in answer.json()["detail"]) == (404, True)
    audit_id = (await client.post("/api/v1/scan", json={"url": outside.page})).json()["id"]
    assert (await client.get(f"/api/v1/audits/{audit_id}/report.pdf")).status_code == 404
    assert (await client.get(f"/api/v1/webhooks/{audit_id}")).status_code == 404
    answer = await client.post(f"/api/v1/audits/{audit_id}/retry")
    assert (answer.status_code, "is pending" in answer.json()["detail"]) == (409, True)
    for path in ("/api/v1/audits", "/api/v1/webhooks", "/", "/webhooks"):
        answer = await client.get(f"{path}?status=nonsense")
        assert (answer.status_code, answer.json()["field"]) == (400, "status")
        assert "status must be one of pending, " in answer.json()["detail"]
        for page in ("0", "-1", "1e9", "10001", "9" * 50):
            answer = await client.get(f"{path}?page={page}")
            assert (answer.status_code, answer.json()["field"]) == (400, "page")
    await box.drain()
    assert (await client.get(f"/api/v1/audits/{audit_id}/screenshots/tablet.jpg")).status_code == 404


@on_sqlite
async def test_e9_the_api_retries_one_and_up_to_50_failed_webhooks_and_prunes(
    box: Sandbox, client: httpx.AsyncClient, outside: Outside, quick: QuickInstruments
) -> None:
    outside.receiver.status = 400
    await client.post("/api/v1/scan", json={"url": outside.page})
    await box.drain()
    [webhook] = (await client.get("/api/v1/webhooks?status=failed")).json()["webhooks"]
    assert (await client.post(f"/api/v1/webhooks/{webhook['id']}/retry")).status_code == 202
    await box.drain()
    assert (await client.post("/api/v1/webhooks/retry-failed")).json()["ids"] == [webhook["id"]]
    answer = await client.post("/api/v1/webhooks/retry-failed?limit=51")
    assert (answer.status_code, answer.json()["detail"]) == (400, "limit must be a whole number from 1 to 50, got '51'")
    assert (await client.post("/api/v1/webhooks/prune")).status_code == 202
    assert (await box.drain()).succeeded == 1


async def readiness(client: httpx.AsyncClient) -> tuple[int, str, dict[str, tuple[str, str]]]:
    """The code, the worst status, and each check with its status and what was seen."""
    answer = await client.get("/desk/readyz", headers={"Authorization": ""})
    found = answer.json()
    return answer.status_code, found["status"], {one["name"]: (one["status"], one["seen"]) for one in found["checks"]}


@pytest.fixture
async def probe(box: Sandbox, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[httpx.AsyncClient]:
    """A client of the desk, whose every answer is a new one."""
    monkeypatch.setattr("perdure.surfaces.server.health._ANSWER_FRESH_SECONDS", 0.0)
    async with asgi(app, health=SYSTEM.health) as desk:
        transport = httpx.ASGITransport(app=api(SYSTEM.routes, desk=desk))
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as one:
            yield one


async def test_e10_health_covers_database_queue_disk_and_browser(probe: httpx.AsyncClient) -> None:
    code, _, checks = await readiness(probe)
    assert (code, {"database", "queues", "failures", "audits", "reports", "browser"} - checks.keys()) == (200, set())
    assert {status for status, _ in checks.values()} <= {"ok", "warning"}
    assert [checks[name][0] for name in ("database", "queues", "audits", "browser")] == ["ok"] * 4


@on_sqlite
async def test_e10_it_warns_when_more_than_100_jobs_wait(probe: httpx.AsyncClient, quick: QuickInstruments) -> None:
    await app.enqueue_many(audit.call(f"http://127.0.0.1/{number}") for number in range(100))
    assert (await readiness(probe))[2]["queues"][0] == "ok"
    await audit.enqueue("http://127.0.0.1/one-more")
    code, status, checks = await readiness(probe)
    assert (code, status) == (200, "warning")
    assert checks["queues"] == ("warning", "ready jobs, more than 100: 'audits' has 101")


@on_sqlite
async def test_e10_it_warns_when_more_than_10_jobs_failed_in_an_hour(
    box: Sandbox, probe: httpx.AsyncClient, quick: QuickInstruments, settings: Setting
) -> None:
    settings("AUDITS_JOB_MAX_ATTEMPTS", "1")
    quick.broken["pdf"] = OSError("no space left")
    for number in range(10):
        await audit.enqueue(f"http://127.0.0.1/{number}")
    await box.drain()
    assert (await readiness(probe))[2]["audits"][0] == "ok"
    await audit.enqueue("http://127.0.0.1/one-more")
    await box.drain()
    assert (await readiness(probe))[2]["audits"] == ("warning", "11 jobs failed in the last hour")
    with capture_logs() as logs:
        await watch_health()
    assert [(log["event"], log["log_level"]) for log in logs] == [("audits need attention", "warning")]
    box.travel("61m")
    assert (await readiness(probe))[2]["audits"][0] == "ok"


@on_sqlite
async def test_e10_a_full_disk_and_a_missing_browser_are_reported(
    probe: httpx.AsyncClient, settings: Setting, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings("AUDITS_LEAST_FREE_MB", "999999999")
    assert (await readiness(probe))[2]["reports"][0] == "warning"
    (tmp_path / "file").write_text("in the way")
    settings("AUDITS_STORAGE_DIR", str(tmp_path / "file"))
    code, status, checks = await readiness(probe)
    assert (code, status, checks["reports"][0]) == (503, "failed", "failed")
    monkeypatch.setattr(health_module, "find_browser", lambda: None)
    assert (await readiness(probe))[2]["browser"] == ("failed", "no Chromium is installed: reports cannot be printed")

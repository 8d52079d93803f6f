"""Hostile requests get clear answers: no 500, nothing kept, and nothing for other sites."""

from __future__ import annotations

from collections.abc import AsyncIterator

import apsw
import httpx
import msgspec
import psycopg
import pytest
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from perdure_systems.kit.web import BODY_LIMIT_BYTES, JsonResponse, Problem, api, read_body, read_page


class Body(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: str = ""


class Busy:
    """What the database does at the next request."""

    error: Exception | None = None


async def take(request: Request) -> Response:
    return JsonResponse(await read_body(request, Body))


async def give(request: Request) -> Response:
    if Busy.error is not None:
        raise Busy.error
    return JsonResponse(read_page(request))


async def refuse(_: Request) -> Response:
    raise Problem(404, "there is no <b>job</b>", field="id")


@pytest.fixture
async def client() -> AsyncIterator[httpx.AsyncClient]:
    routes = [
        Route("/things", take, methods=["POST"]),
        Route("/things", give),
        Route("/things/{id}", refuse),
        Route("/api/things/{id}", refuse),
    ]
    transport = httpx.ASGITransport(app=api(routes, hosts=["jobs.example.com"]), raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8100") as one:
        yield one


@pytest.mark.parametrize(
    "body",
    [
        b"{",
        b'{"name": NaN}',
        b'{"other": NaN}',
        b'{"other": ' + b"[" * 100_000,
        b'{"name": "\xe4"}',
        b'{"name": "\\ud800"}',
        b"\0",
    ],
    ids=["half", "nan", "nan in an unknown field", "deep", "latin-1", "surrogate", "nul"],
)
async def test_a_body_that_is_no_json_is_a_400(client: httpx.AsyncClient, body: bytes) -> None:
    answer = await client.post("/things", content=body)
    assert (answer.status_code, answer.headers["content-type"]) == (400, "application/problem+json")
    assert answer.json().get("field") in {"body", "other", None}


async def test_a_body_that_is_too_large_is_refused_and_not_kept(client: httpx.AsyncClient) -> None:
    async def endless() -> AsyncIterator[bytes]:
        for _ in range(200):
            yield b" " * 10_000

    answer = await client.post("/things", content=endless())
    assert answer.status_code == 413
    assert answer.json()["detail"] == f"body must be at most {BODY_LIMIT_BYTES:,} bytes, got 2,000,000"


@pytest.mark.parametrize("page", ["0", "-1", "--1", "9" * 5_000, "1e3", "٣", " 1", "1.0"])
async def test_a_page_that_cannot_be_meant_is_a_400_that_names_it(client: httpx.AsyncClient, page: str) -> None:
    answer = await client.get("/things", params={"page": page})
    assert (answer.status_code, answer.json()["field"]) == (400, "page")
    assert len(answer.text) < 500


async def test_405_names_the_methods_of_all_routes_with_this_path(client: httpx.AsyncClient) -> None:
    answer = await client.delete("/things")
    assert (answer.status_code, answer.headers["allow"]) == (405, "GET, HEAD, POST")
    assert answer.json()["detail"] == "DELETE is not allowed here; allowed: GET, HEAD, POST"


async def test_a_long_path_is_not_sent_back(client: httpx.AsyncClient) -> None:
    answer = await client.get("/" + "a" * 20_000)
    assert (answer.status_code, len(answer.json()["detail"])) == (404, 1_000)


async def test_a_person_sees_a_page_and_a_program_a_document(client: httpx.AsyncClient) -> None:
    asking = {"accept": "text/html,*/*;q=0.8"}
    page = await client.get("/things/7", headers=asking)
    assert (page.status_code, page.headers["content-type"]) == (404, "text/html; charset=utf-8")
    assert "there is no &lt;b&gt;job&lt;/b&gt;" in page.text
    for path, headers in (("/api/things/7", asking), ("/things/7", {})):
        assert (await client.get(path, headers=headers)).json()["detail"] == "there is no <b>job</b>"


@pytest.mark.parametrize("error", [psycopg.OperationalError("gone"), apsw.BusyError("locked")], ids=["pg", "sqlite"])
async def test_a_database_that_is_away_is_a_503(
    client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    monkeypatch.setattr(Busy, "error", error)
    answer = await client.get("/things")
    assert answer.status_code == 503
    assert answer.json()["detail"].startswith("the database cannot be used now")


KNOWN = ["127.0.0.1:8100", "10.1.2.3", "[::1]:8100", "localhost:8100", "demo.localhost", "pulse", "Jobs.Example.com:80"]
UNKNOWN = ["evil.example", "127.0.0.1.evil.example:8100", "jobs.example.com.evil.example", "a/b?c", "localhost@evil"]


@pytest.mark.parametrize("host", KNOWN)
async def test_the_own_names_are_served(client: httpx.AsyncClient, host: str) -> None:
    assert (await client.get("/things", headers={"host": host})).status_code == 200
    own = {"host": host, "origin": f"http://{host}"}
    assert (await client.post("/things", content=b"{}", headers=own)).status_code == 200


@pytest.mark.parametrize("host", UNKNOWN)
async def test_another_sites_name_that_leads_here_is_refused(client: httpx.AsyncClient, host: str) -> None:
    """A page of evil.example lets its own name point to this machine: to the browser it is the same origin."""
    rebound = {"host": host, "origin": f"http://{host}", "sec-fetch-site": "same-origin"}
    for answer in (
        await client.get("/things", headers=rebound),
        await client.post("/things", content=b"{}", headers=rebound),
    ):
        assert answer.status_code == 421
        assert "is not known here: start the system with --allow-host" in answer.json()["detail"]


SISTER = {"sec-fetch-site": "same-site", "origin": "http://127.0.0.1:8100"}


@pytest.mark.parametrize(
    "headers",
    [{"origin": "http://evil.example"}, {"origin": "null"}, {"sec-fetch-site": "cross-site"}, SISTER],
)
async def test_what_another_site_sends_is_refused(client: httpx.AsyncClient, headers: dict[str, str]) -> None:
    answer = await client.post("/things", content=b"{}", headers=headers)
    assert (answer.status_code, answer.json()["title"]) == (403, "Forbidden")
    assert (await client.get("/things", headers=headers)).status_code == 200


async def test_every_answer_keeps_the_page_to_itself(client: httpx.AsyncClient) -> None:
    for path in ("/things", "/nowhere", "/static/system.js", "/static/%2e%2e/web.py"):
        answer = await client.get(path)
        assert answer.headers["content-security-policy"].startswith("default-src 'self'")
        assert answer.headers["x-content-type-options"] == "nosniff"

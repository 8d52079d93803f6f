"""The frame of all pages: what every page brings, and what it never does."""

from __future__ import annotations

import gzip
import re
from typing import NamedTuple

import pytest
from httpx import ASGITransport, AsyncClient
from tests.support.builders.jobs import enqueue
from tests.support.web.desk_pages import paths
from tests.support.web.desk_site import desk_site

from perdure.domain.operate.access import Scope
from perdure.errors import StoreUnavailable
from perdure.storage.port import Store
from perdure.surfaces.access.caller import Caller
from perdure.surfaces.access.login.page import LoginView
from perdure.surfaces.desk.login import login_page
from perdure.surfaces.desk.visit import Visit
from perdure.surfaces.server.site import Site

FIRST_PAINT = 60_000  # bytes over the wire


def client(store: Store, **options: object) -> AsyncClient:
    return AsyncClient(transport=ASGITransport(desk_site(store, **options)), base_url="http://127.0.0.1")  # type: ignore[arg-type]


async def test_first_paint_of_every_page_stays_within_60_kb_over_the_wire(shop: tuple[str, dict[str, str]]) -> None:
    url, names = shop
    async with Site(url) as site, AsyncClient(transport=ASGITransport(site), base_url="http://127.0.0.1") as client:
        wire: dict[str, int] = {}
        for name, path in paths(names).items():
            page = await wired(client, path)
            wire[name] = page.size + sum(
                [(await wired(client, file)).size for file in re.findall(r'(?:href|src)="(/static/[^"]+)"', page.text)]
            )
    assert {name: size for name, size in wire.items() if size > FIRST_PAINT} == {}


class Wired(NamedTuple):
    """An answer, and how many bytes of it went over the wire."""

    text: str
    size: int


async def wired(client: AsyncClient, path: str) -> Wired:
    async with client.stream("GET", path, headers={"Accept-Encoding": "gzip"}) as answer:
        raw = b"".join([chunk async for chunk in answer.aiter_raw()])
    assert answer.headers["content-encoding"] == "gzip", path
    return Wired(gzip.decompress(raw).decode(), len(raw))


async def test_static_files_carry_a_hash_and_are_kept_for_ever(pages: AsyncClient) -> None:
    page = await pages.get("/")
    [style] = re.findall(r'href="(/static/desk\.[0-9a-f]{12}\.css)"', page.text)
    answer = await pages.get(style, headers={"Accept-Encoding": "gzip"})
    assert answer.headers["cache-control"] == "public, max-age=31536000, immutable"
    assert answer.headers["content-encoding"] == "gzip"
    assert (await pages.get("/static/desk.css")).status_code == 404
    assert (await pages.get("/static/../frame.py")).status_code == 404


async def test_pages_hold_nothing_that_a_strict_policy_forbids(pages: AsyncClient) -> None:
    page = await pages.get("/")
    assert page.headers["cache-control"] == "no-store"
    assert not re.search(r"\sstyle=|\son\w+=|<style|javascript:|hx-on|<script(?! src=)", page.text)
    assert not re.search(r'(?:src|href)="https?:', page.text)


async def test_an_open_page_gets_its_rail_and_content_only(pages: AsyncClient) -> None:
    part = await pages.get("/", headers={"Perdure-Part": "page"})
    assert part.text.lstrip().startswith('<nav id="rail"')
    assert '<main id="content"' in part.text
    assert "<html" not in part.text


async def test_pages_say_who_is_signed_in_and_with_which_scope(store: Store) -> None:
    async with client(store, caller=Caller(name="grace", scope=Scope.READ, source="desk", csrf="t0ken")) as pages:
        page = await pages.get("/")
    assert "grace · scope read" in page.text
    assert "Sign out" not in page.text  # there is no session that could end
    signed_in = Caller(name="grace", scope=Scope.READ, source="desk", csrf="t0ken", has_session=True)
    async with client(store, caller=signed_in) as pages:
        page = await pages.get("/")
    assert "Sign out" in page.text
    assert '<input type="hidden" name="_csrf" value="t0ken">' in page.text


async def test_a_prefix_is_part_of_every_link(store: Store) -> None:
    transport = ASGITransport(desk_site(store), root_path="/ops")
    async with AsyncClient(transport=transport, base_url="http://127.0.0.1") as pages:
        page = await pages.get("/ops/")
    assert page.status_code == 200
    links = re.findall(r'(?:href|src|action)="(/[^"]*)"', page.text)
    assert links
    assert not [link for link in links if not link.startswith("/ops/")]


@pytest.mark.parametrize(("span", "status"), [("1d", 200), ("7d", 200), ("2y", 400), ("<script>", 400)])
async def test_a_span_is_one_of_three(pages: AsyncClient, span: str, status: int) -> None:
    page = await pages.get("/", params={"span": span})
    assert page.status_code == status
    assert "<script>alert" not in page.text
    if status == 400:
        assert "span must be 1h, 1d or 7d" in page.text


async def test_a_database_that_is_away_is_reported_with_503(
    pages: AsyncClient, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def away() -> None:
        raise StoreUnavailable("cannot connect to 10.0.0.7")

    monkeypatch.setattr(store, "pauses", away)
    page = await pages.get("/")
    assert page.status_code == 503
    assert page.headers["perdure-away"] == "database"
    assert "No answer from the database" in page.text


async def test_a_defect_of_the_desk_is_a_page_without_its_details_and_a_traceback_in_the_log(
    pages: AsyncClient, store: Store, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def broken() -> None:
        raise KeyError("hunter2")

    monkeypatch.setattr(store, "pauses", broken)
    page = await pages.get("/")
    assert (page.status_code, page.headers["content-type"]) == (500, "text/html; charset=utf-8")
    assert "The log of the desk has the traceback" in page.text
    assert "hunter2" not in page.text
    assert "KeyError: 'hunter2'" in caplog.text


async def test_a_form_that_is_too_long_is_refused_and_is_no_defect(pages: AsyncClient) -> None:
    answer = await pages.post("/queues/default/pause", data={f"f{number}": "x" for number in range(200)})
    assert 400 <= answer.status_code < 500


async def test_hostile_names_stay_text(pages: AsyncClient, store: Store) -> None:
    await enqueue(store, queue="<img src=x onerror=alert(1)>\u202e")
    page = await pages.get("/")
    assert "<img" not in page.text
    assert "&lt;img src=x onerror=alert(1)&gt;" in page.text
    assert "\u202e" not in page.text


async def test_a_path_that_leads_nowhere_is_a_page_with_404(pages: AsyncClient) -> None:
    page = await pages.get("/<script>alert(1)</script>")
    assert page.status_code == 404
    assert "Not found" in page.text
    assert "<script>alert" not in page.text


def test_the_login_page_has_the_look_of_the_desk_and_escapes_what_it_repeats() -> None:
    view = LoginView(action="/ops/login", next='/"><script>', csrf="t0ken", prefix="/ops", problem="<b>No</b>")
    html = login_page()(view)
    assert '<link rel="stylesheet" href="/ops/static/desk.' in html
    assert 'name="_csrf" value="t0ken"' in html
    assert "<script>" not in html
    assert "<b>" not in html


async def test_a_page_says_how_long_it_took_so_that_an_expensive_one_is_refreshed_more_seldom(
    pages: AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Visit, "took", 3.2049)
    for headers in ({}, {"Perdure-Part": "page"}):
        page = await pages.get("/keys", headers=headers)
        assert '<main id="content" data-took="3.205" data-every="2"' in page.text

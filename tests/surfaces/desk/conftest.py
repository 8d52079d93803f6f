"""The desk's pages: asked without a server, or clicked through in a browser that all tests share."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from httpx import ASGITransport, AsyncClient
from playwright.async_api import Browser, Page, expect
from tests.support.builders.jobs import enqueue
from tests.support.databases.databases import SqliteFiles
from tests.support.web.browser import PATIENCE, connected, find_browser, running_browser
from tests.support.web.desk_seed import seed
from tests.support.web.desk_site import desk_site, served

from perdure.operate.health.checkup import Checkup
from perdure.storage.operate.diagnosis import Finding
from perdure.storage.port import Store
from perdure.surfaces.desk.visit import Visit
from perdure.surfaces.server.site import Site

expect.set_options(timeout=PATIENCE * 1_000)
WATCH = """
addEventListener("securitypolicyviolation", (event) => console.error("CSP: " + event.violatedDirective));
"""


@pytest.fixture
async def pages(store: Store, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[AsyncClient]:
    """The desk's pages over a store of either engine, as an admin sees them.

    Databases of tests have a clock of their own and do not sync to disk: the desk would say so, rightly.
    """

    async def fine(_: Checkup) -> list[Finding]:
        return []

    monkeypatch.setattr(Checkup, "examine_database", fine)
    transport = ASGITransport(desk_site(store))
    async with AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
        yield client


@pytest.fixture(scope="session")
def browser_endpoint() -> Iterator[str]:
    """A real browser for the whole run. Skipped where there is none."""
    path = find_browser()
    if path is None:
        pytest.skip("no Chromium is installed")
    with running_browser(path) as endpoint:
        yield endpoint


@pytest.fixture
async def browser(browser_endpoint: str) -> AsyncIterator[Browser]:
    """The browser, for this test's event loop."""
    async with connected(browser_endpoint) as browser:
        yield browser


@pytest.fixture
async def tab(browser: Browser, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Page]:
    """An empty tab in Tokyo. The test fails if a page in it complains, breaks the policy or opens a dialog.

    No page says that it was expensive, so each refreshes as soon as it may, however busy the machine is.
    """
    monkeypatch.setattr(Visit, "took", 0.0)
    complaints: list[str] = []
    context = await browser.new_context(timezone_id="Asia/Tokyo", viewport={"width": 1280, "height": 900})
    page = await context.new_page()
    await page.add_init_script(WATCH)
    page.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("dialog", lambda dialog: complaints.append(f"dialog: {dialog.message}"))
    page.set_default_timeout(PATIENCE * 1_000)
    yield page
    await context.close()
    expected = ("the server responded with a status of", "net::ERR_")  # tests ask for pages that are not there
    assert [one for one in complaints if not any(part in one for part in expected)] == []


@pytest.fixture
async def site(engine_url: str) -> AsyncIterator[Site]:
    """A site of its own on a database of either engine."""
    async with Site(engine_url) as site:
        yield site


@pytest.fixture
async def address(site: Site) -> AsyncIterator[str]:
    """Where the site is served."""
    async with served(site) as address:
        yield address


@pytest.fixture
async def stored(site: Site) -> Store:
    """The store behind the site, with a job in a queue."""
    store = await site.backing.store()
    await enqueue(store, queue="mail", kind="send_mail")
    return store


@pytest.fixture(scope="session")
def shop(sqlite_files: SqliteFiles, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, dict[str, str]]:
    """A day of a shop, for tests that only look: its URL, and names for paths."""
    file: Path = tmp_path_factory.mktemp("shop") / "shop.db"
    sqlite_files.put(file)
    url = f"sqlite:///{file}"
    return url, asyncio.run(seed(url))

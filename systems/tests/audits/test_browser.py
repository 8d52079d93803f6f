"""With a real Chromium: the browser's own timings, screenshots in two sizes, a report, and the pages."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import Any
from unicodedata import normalize

import httpx
import pytest
import pytest_asyncio
from playwright.async_api import Error, Locator, Page
from pypdf import PdfReader
from systems.tests.running import running_system

from perdure.testing import Sandbox
from perdure_systems.audits import addresses
from perdure_systems.audits.jobs import audit
from perdure_systems.audits.pipeline.browsing import Chromium
from perdure_systems.audits.pipeline.instruments import RealInstruments, using_instruments
from perdure_systems.audits.settings import storage_folder
from perdure_systems.audits.standins import Outside, QuickInstruments
from perdure_systems.audits.system import SYSTEM
from perdure_systems.audits.web.views import audit_view
from perdure_systems.kit.browser import find_browser

# One Chromium and one running system for all tests here: to start them takes longer than to use them.
pytestmark = [
    pytest.mark.skipif(find_browser() is None, reason="no Chromium is installed"),
    pytest.mark.asyncio(loop_scope="module"),
]
Setting = Callable[[str, str], None]
PATIENCE = 60  # seconds, on a machine that does much else


@pytest.fixture(scope="module")
def chromium() -> Chromium:
    """The browser of the system; `address` ends it."""
    return Chromium()


@pytest.fixture(scope="module")
def real(chromium: Chromium) -> Iterator[RealInstruments]:
    """What the system measures and prints with."""
    instruments = RealInstruments(chromium)
    with using_instruments(instruments):
        yield instruments


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def address(tmp_path_factory: pytest.TempPathFactory, real: RealInstruments) -> AsyncIterator[str]:
    """The system as it is run, with real workers, on a database of its own."""
    url = f"sqlite:///{tmp_path_factory.mktemp('audits') / 'audits.db'}"
    async with AsyncExitStack() as stack:
        for one in SYSTEM.apps:
            await stack.enter_async_context(Sandbox(one, url=url))
        yield await stack.enter_async_context(running_system(SYSTEM))


@pytest_asyncio.fixture(loop_scope="module")
async def outside(settings: Setting) -> AsyncIterator[Outside]:
    """A PageSpeed API, a site and a receiver; the settings point to them."""
    async with Outside() as services:
        settings("AUDITS_PAGESPEED_URL", services.api)
        settings("AUDITS_WEBHOOK_URL", services.hook)
        yield services


@pytest_asyncio.fixture(loop_scope="module")
async def page(chromium: Chromium, address: str) -> AsyncIterator[Page]:
    """An empty page for a person who looks at the system."""
    async with chromium.page() as page:
        page.set_default_timeout(PATIENCE * 1_000)
        yield page


async def ended(audit_id: str) -> str:
    """The status of an audit once it is final."""
    async with asyncio.timeout(PATIENCE):
        while (status := (await audit_view(audit_id)).status) in {"pending", "processing"}:
            await asyncio.sleep(0.1)
    return status


async def test_e8_an_audit_with_the_browsers_own_timings_both_screenshots_and_a_report(
    outside: Outside, address: str, settings: Setting
) -> None:
    """No PageSpeed API is set: Chromium measures, photographs in 1920×1080 and 375×812, and prints."""
    settings("AUDITS_PAGESPEED_URL", "")
    handle = await audit.enqueue(outside.page, "desktop")
    assert await ended(handle.id) == "completed"
    view = await audit_view(handle.id)
    assert view.warnings == []
    assert outside.calls["pagespeed"] == 0
    assert view.pagespeed_data is not None
    assert view.pagespeed_data.source == "browser"
    assert 0 < view.pagespeed_data.scores["performance"] <= 100
    measured = {metric.name: metric.value for metric in view.pagespeed_data.metrics}
    assert 0 < measured["first-contentful-paint"] <= measured["load"] + 5_000
    assert view.pagespeed_data.requests in {2, 3}, "the page, its style sheet, and perhaps an icon"
    assert view.pagespeed_data.bytes is not None
    assert view.pagespeed_data.bytes > 1_000

    folder = storage_folder() / handle.id
    assert jpeg_size((folder / "desktop.jpg").read_bytes()) == (1920, 1080)
    assert jpeg_size((folder / "mobile.jpg").read_bytes()) == (375, 812)
    report = PdfReader(folder / "report.pdf")
    text = normalize("NFKC", "".join(page.extract_text() for page in report.pages))  # "ff" may be one character
    for words in ("127.0.0.1", "Performance", "First Contentful Paint", "Screenshots", handle.id, "Page 1 of"):
        assert "".join(words.split()) in "".join(text.split()), "wherever a line is broken"
    assert images(folder / "report.pdf") == {(1920, 1080), (375, 812)}


async def test_e4_a_report_without_pictures_says_so_and_holds_none(outside: Outside, address: str) -> None:
    handle = await audit.enqueue("http://127.0.0.1:9/closed")
    assert await ended(handle.id) == "completed"
    file = storage_folder() / handle.id / "report.pdf"
    text = "\n".join(page.extract_text() for page in PdfReader(file).pages)
    assert "No screenshot" in text
    assert "The screenshot failed" in text
    assert images(file) == set()
    async with asyncio.timeout(PATIENCE):
        while not outside.received:
            await asyncio.sleep(0.05)
    assert outside.received[0].json()["screenshotsIncluded"] is False


async def test_hostile_text_is_text(outside: Outside, page: Page, address: str, quick: QuickInstruments) -> None:
    """An address with markup in it appears as it is."""
    handle = await audit.enqueue(f"{outside.page}<script>document.title='taken'</script>")
    await ended(handle.id)
    for path in ("/", f"/audits/{handle.id}", "/webhooks"):
        await page.goto(f"{address}{path}")
        assert await page.locator("main script").count() == 0
        assert await page.title() != "taken"
        assert await page.get_by_text("<script>document").first.is_visible()


async def test_an_audit_is_asked_for_failed_retried_and_read_on_the_page(
    outside: Outside, page: Page, address: str, quick: QuickInstruments, settings: Setting
) -> None:
    settings("AUDITS_JOB_MAX_ATTEMPTS", "1")
    quick.broken["pdf"] = OSError("no space left")
    outside.receiver.status = 400
    url = f"{outside.page}asked-for"
    await page.goto(f"{address}/?status=failed")
    await page.get_by_text("No audits are failed").wait_for()
    await page.get_by_role("textbox", name="Page").fill("ftp://nowhere/")
    await page.get_by_role("button", name="Audit").click()
    await page.get_by_text("url must be an http or https address").wait_for()
    await page.get_by_role("textbox", name="Page").fill(url)
    await page.get_by_role("button", name="Audit").click()
    await seen(page, page.get_by_text("OSError: no space left"))
    quick.broken.clear()
    await page.get_by_role("button", name="Retry").click()
    await page.goto(address)
    row = page.locator("tr", has=page.get_by_role("link", name=url))
    await seen(page, row.get_by_role("link", name="PDF"))
    await row.get_by_role("link", name=url).click()
    await page.get_by_role("heading", name=url, exact=True).wait_for()
    await seen(page, page.get_by_text(f"{outside.hook.removesuffix('/hook')} answered 400"))
    outside.receiver.status = 200
    await page.goto(f"{address}/webhooks?status=failed")
    await page.get_by_role("button", name="Retry failed").click()
    await page.goto(f"{address}/webhooks?status=delivered")
    await seen(page, page.get_by_role("link", name=url))
    await page.goto(f"{address}/figures")
    await seen(page, page.get_by_text(re.compile(r"\b[1-9]\d* delivered")).first)
    await page.set_viewport_size({"width": 390, "height": 800})
    for path in ("/", "/webhooks", "/figures"):
        await page.goto(f"{address}{path}")
        assert await page.evaluate("document.documentElement.scrollWidth") <= 390


async def test_the_pages_ask_for_the_password_if_one_is_set(address: str, settings: Setting) -> None:
    settings("AUDITS_PAGE_PASSWORD", "open sesame")
    async with httpx.AsyncClient(base_url=address) as client:
        for path in ("/", "/webhooks", "/figures", "/audits/x", "/audits/x/report.pdf", "/audits/x/mobile.jpg"):
            for given in (None, ("anyone", "wrong"), ("open sesame", "")):
                answer = await client.get(path, auth=given)
                assert (answer.status_code, answer.headers["www-authenticate"]) == (401, 'Basic realm="site audits"')
        for path in ("/audits", "/audits/x/retry", "/webhooks/x/retry", "/webhooks/retry-failed"):
            assert (await client.post(path)).status_code == 401
        assert (await client.get("/", auth=("anyone", "open sesame"))).status_code == 200


async def test_a_browser_that_is_gone_is_started_again(
    outside: Outside, real: RealInstruments, chromium: Chromium
) -> None:
    assert await real.photograph(outside.page, "mobile")
    browser = chromium._browser
    assert browser is not None
    await browser.close()
    assert await real.photograph(outside.page, "mobile")


async def test_a_page_cannot_lead_the_browser_into_the_own_network(
    outside: Outside, real: RealInstruments, settings: Setting, monkeypatch: pytest.MonkeyPatch
) -> None:
    """127.0.0.1 plays the public internet here, and 127.0.0.2 the own network. The page redirects to the latter."""
    settings("AUDITS_ALLOW_PRIVATE_ADDRESSES", "false")
    monkeypatch.setattr(addresses, "is_public", lambda address: address == "127.0.0.1")
    async with Outside(host="127.0.0.2") as inside:
        picture = await real.photograph(outside.page, "mobile")
        assert picture.startswith(b"\xff\xd8")
        with suppress(Error):
            await real.photograph(f"{outside.page}away?to={inside.page}secret", "mobile")
        assert inside.calls == {}


async def seen(page: Page, wanted: Locator) -> None:
    """Load the page again until this is there: that is quicker than to wait for the page to do so."""
    async with asyncio.timeout(PATIENCE):
        while not await wanted.is_visible():
            await asyncio.sleep(0.1)
            await page.reload()


def jpeg_size(content: bytes) -> tuple[int, int]:
    """Width and height from the frame header."""
    at = 2
    while at < len(content):
        marker, length = content[at + 1], int.from_bytes(content[at + 2 : at + 4], "big")
        if marker in {0xC0, 0xC1, 0xC2}:
            return int.from_bytes(content[at + 7 : at + 9], "big"), int.from_bytes(content[at + 5 : at + 7], "big")
        at += 2 + length
    raise AssertionError("no picture")


def images(file: Path) -> set[tuple[int, int]]:
    """The sizes of the pictures in a PDF."""
    resources: list[Any] = [page["/Resources"] for page in PdfReader(file).pages]
    drawn = [one.get_object() for each in resources for one in each.get("/XObject", {}).values()]
    return {(int(one["/Width"]), int(one["/Height"])) for one in drawn if one["/Subtype"] == "/Image"}

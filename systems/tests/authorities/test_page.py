"""The pages in a real browser."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from playwright.async_api import Page, expect
from systems.tests.authorities.support import order
from systems.tests.running import running_system

from perdure.testing import Sandbox
from perdure_systems.authorities.settings import Authority
from perdure_systems.authorities.standins import Reply, StandIns, new_request
from perdure_systems.authorities.system import SYSTEM
from perdure_systems.kit.service import System


@pytest.fixture
async def address(sqlite_box: Sandbox) -> AsyncIterator[str]:
    """The system's HTTP server, without workers: the sandbox runs the jobs."""
    served = System(name="a", title="Authorities", port=0, apps=(), routes=SYSTEM.routes)
    async with running_system(served, run_jobs=False) as address:
        yield address


async def test_an_order_can_be_followed_polled_and_downloaded(
    browser_page: Page, address: str, sqlite_box: Sandbox, standins: StandIns
) -> None:
    standins.entrust.behaviour.approve_after = None
    await browser_page.goto(f"{address}/new")
    await browser_page.get_by_label("Authority").select_option("entrust")
    await browser_page.get_by_label("Certificate signing request").fill(new_request("shop.example", "www.shop.example"))
    await browser_page.get_by_role("button", name="Place order").click()
    await expect(browser_page.locator("#notice")).to_contain_text("Ordered")
    await sqlite_box.drain()
    await browser_page.goto(address)
    row = browser_page.get_by_role("row").filter(has_text="shop.example")
    await expect(row).to_contain_text("parked")
    await expect(row).to_contain_text("at Entrust")
    await expect(row).to_contain_text("order trk-1001 is 'AWAITING_APPROVAL' at Entrust")
    await row.get_by_role("link").click()
    panel = browser_page.get_by_role("definition")
    await expect(browser_page.get_by_text("Parked at Entrust.")).to_be_visible()
    await expect(panel.nth(1)).to_have_text("1")
    standins.entrust.approve("trk-1001")
    await browser_page.get_by_role("button", name="Poll now").click()
    await expect(browser_page.locator("#notice")).to_contain_text("asked now")
    await sqlite_box.drain()
    await browser_page.reload()
    await expect(browser_page.locator(".chip")).to_have_text("issued")
    await expect(browser_page.get_by_text("verified up to a trusted root")).to_be_visible()
    async with browser_page.expect_download() as download:
        await browser_page.get_by_role("link", name="Download chain").click()
    path = await (await download.value).path()
    assert path.read_text().count("BEGIN CERTIFICATE") == 2
    await browser_page.get_by_label("Reason").select_option("superseded")
    await browser_page.get_by_role("button", name="Revoke this certificate").click()
    await expect(browser_page.locator("#notice")).to_contain_text("told to revoke")
    await sqlite_box.drain()
    await browser_page.reload()
    await expect(browser_page.locator(".chip")).to_have_text("revoked")


async def test_hostile_answers_are_text_and_nothing_scrolls_sideways(
    browser_page: Page, address: str, sqlite_box: Sandbox, standins: StandIns
) -> None:
    attack = b"<script>document.title='owned'</script>" + b"W" * 300
    standins.sectigo.behaviour.always = Reply(403, attack)
    standins.digicert.behaviour.always = Reply(503, attack)
    name = f"{'long-label-' * 4}x.example"
    orders = [await order(authority, name) for authority in (Authority.SECTIGO, Authority.DIGICERT)]
    await sqlite_box.drain()
    problems: list[str] = []
    browser_page.on("console", lambda message: problems.append(message.text))
    for width in (390, 1280):
        await browser_page.set_viewport_size({"width": width, "height": 800})
        for path in ("/", "/new", "/authorities", *(f"/orders/{order_id}" for order_id in orders)):
            await browser_page.goto(address + path)
            assert "owned" not in await browser_page.title()
            scrolled = await browser_page.evaluate("document.documentElement.scrollWidth")
            assert scrolled <= width, (path, width, scrolled)
    assert problems == []

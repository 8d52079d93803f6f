"""The desk in a real browser: clicks, keys, live rows, outages, and no script where there is none."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

import pytest
from playwright.async_api import Browser, Page, expect
from tests.support.builders.jobs import HOSTILE, enqueue, job_in
from tests.support.web.desk_pages import paths
from tests.support.web.desk_site import served

from perdure.app.app import App
from perdure.domain.jobs.states import JobState
from perdure.errors import StoreUnavailable
from perdure.operate.desk import Desk
from perdure.storage.port import Store
from perdure.storage.records import JobFilter
from perdure.storage.records import Page as PageOf
from perdure.surfaces.server.site import Site

pytestmark = pytest.mark.slow
THEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")
AUDIT = (Path(__file__).parents[2] / "support" / "web" / "page_audit.js").read_text()


async def test_a_queue_is_paused_and_resumed_by_clicks(tab: Page, address: str, stored: Store) -> None:
    await tab.goto(address)
    await expect(tab.locator("#needs")).to_contain_text("Queue mail has 1 job and no worker")
    await tab.locator("#rail").get_by_role("link", name="Queues").click()
    await tab.get_by_role("link", name="mail").click()
    await tab.get_by_role("button", name="Pause…").click()
    dialog = tab.locator("#confirm")
    await expect(dialog).to_contain_text("Pause the queue mail?")
    await expect(dialog).to_contain_text("perdure pause --queue mail")
    await dialog.get_by_role("button", name="Back").click()
    assert await stored.pauses() == []
    await tab.get_by_role("button", name="Pause…").click()
    await dialog.get_by_label("Why").fill("<b>provider</b> down")
    await dialog.get_by_role("button", name="Pause", exact=True).click()
    await expect(tab.locator("#said")).to_contain_text("Queue mail is paused.")
    await expect(tab.locator(".notice")).to_contain_text("<b>provider</b> down")
    [pause] = await stored.pauses()
    assert (pause.why, pause.actor) == ("<b>provider</b> down", "local")
    await tab.get_by_role("button", name="Resume…").click()
    await expect(dialog).to_contain_text("perdure resume --queue mail")
    await dialog.get_by_label("Why").fill("it is back")
    await dialog.get_by_role("button", name="Resume", exact=True).click()
    await expect(tab.locator("#said")).to_contain_text("Queue mail is resumed.")
    assert (await Desk(stored, "ada").audit(limit=1)).entries[0].why == "it is back"
    assert await stored.pauses() == []


async def test_a_job_is_enqueued_and_marked_by_clicks(tab: Page, engine_url: str, store: Store) -> None:
    app = App(engine_url)

    @app.job(queue="mail")
    async def send_mail(to: str) -> None:
        """Send a mail."""

    async with Site(app) as site, served(site) as address:
        await tab.set_viewport_size({"width": 390, "height": 844})
        await tab.goto(f"{address}/jobs")
        await tab.get_by_role("link", name="Enqueue…").click()
        await tab.get_by_label("Kind", exact=False).first.fill("send_mail")
        arguments = tab.locator("textarea[name=args]")
        await arguments.fill('{\n"too": "ada"}')
        await tab.get_by_role("button", name="Enqueue").click()
        await expect(tab.get_by_role("alert")).to_contain_text("argument too")
        await expect(arguments).to_have_value('{\n"too": "ada"}')
        await arguments.fill('{"to": "ada"}')
        await tab.locator("main").get_by_label("Why").fill("<i>by hand</i>")
        await tab.get_by_role("button", name="Enqueue").click()
        await expect(tab.locator("#said")).to_contain_text("Enqueued job")
        await tab.get_by_role("button", name="Mark…").click()
        dialog = tab.locator("#mark")
        await dialog.get_by_label("Mark such as").fill("seen")
        await dialog.get_by_role("button", name="Mark", exact=True).click()
        await expect(tab.locator("#said")).to_contain_text("Marked as seen.")
        await tab.goto("about:blank")
    [job] = await store.jobs(JobFilter(), PageOf(5))
    assert (job.kind, job.queue, job.mark) == ("send_mail", "mail", "seen")
    entries = (await Desk(store, "ada").audit()).entries
    assert {(entry.action, entry.why) for entry in entries} == {("enqueue", "<i>by hand</i>"), ("mark", None)}


async def test_keys_lead_everywhere(tab: Page, address: str, stored: Store) -> None:
    await tab.goto(address)
    await tab.keyboard.press("/")
    await expect(tab.locator("#search")).to_be_focused()
    await tab.keyboard.press("Escape")  # closes the suggestions, if they are there already
    await tab.keyboard.press("Escape")
    await expect(tab.locator("#search")).not_to_be_focused()
    await tab.keyboard.press("?")
    await expect(tab.locator("#keys")).to_be_visible()
    await tab.keyboard.press("Escape")
    await expect(tab.locator("#keys")).to_be_hidden()
    await tab.keyboard.press("g")
    await tab.keyboard.press("q")
    await expect(tab).to_have_url(f"{address}/queues")
    await tab.keyboard.press("j")
    await expect(tab.locator("tr.at")).to_have_count(1)
    await tab.keyboard.press("Enter")
    await expect(tab).to_have_url(f"{address}/queues/mail")


async def test_rows_come_live_and_wait_while_the_user_points_at_the_table(
    tab: Page, address: str, stored: Store, site: Site
) -> None:
    await tab.goto(f"{address}/queues")
    await expect(tab.locator("#live")).to_have_text("live")
    await enqueue(stored, queue="alpha")
    await expect(tab.locator("#queue-alpha")).to_be_visible()
    await tab.locator("#queue-mail").hover()
    before = await tab.locator("#queue-mail").bounding_box()
    await enqueue(stored, queue="aardvark")
    await enqueue(stored, queue="mail")
    await expect(tab.locator(".waiting-rows")).to_have_text("1 new")
    await expect(tab.locator("#queue-mail td").nth(1)).to_have_text("2")  # what is there goes on changing
    assert await tab.locator("#queue-aardvark").count() == 0
    after = await tab.locator("#queue-mail").bounding_box()
    assert before is not None
    assert after is not None
    assert (after["y"], after["height"]) == (before["y"], before["height"])
    await tab.locator(".waiting-rows").click()
    await expect(tab.locator("#queue-aardvark")).to_be_visible()
    await expect(tab.locator(".waiting-rows")).to_have_count(0)
    await tab.evaluate("Object.defineProperty(document, 'hidden', {get: () => true, configurable: true})")
    await tab.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    async with asyncio.timeout(30):
        while site.live.streams:
            await asyncio.sleep(0.05)


async def test_a_page_says_that_the_database_is_away_and_recovers(
    tab: Page, address: str, stored: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def away(*_: object, **__: object) -> None:
        raise StoreUnavailable("cannot connect")

    await tab.goto(f"{address}/queues")
    await expect(tab.locator("#live")).to_have_text("live")
    with monkeypatch.context() as patch:
        for name in ("counts", "count", "now", "workers"):
            patch.setattr(stored, name, away)
        await expect(tab.locator("#away")).to_contain_text("No answer from the database since")
        await expect(tab.locator("#queue-mail")).to_be_visible()  # what was known stays
    await expect(tab.locator("#away")).to_be_hidden()
    await expect(tab.locator("#live")).to_have_text("live")


async def test_a_page_says_that_the_server_is_away_and_recovers(tab: Page, shop: tuple[str, dict[str, str]]) -> None:
    async with Site(shop[0]) as site, served(site) as address:
        await tab.goto(f"{address}/queues")
        await expect(tab.locator("#live")).to_have_text("live")
    await expect(tab.locator("#away")).to_contain_text("No answer from the server since")
    async with Site(shop[0]) as site, served(site, urlsplit(address).port or 0):
        await expect(tab.locator("#away")).to_be_hidden()
        await expect(tab.locator("#live")).to_have_text("live")
        await tab.goto("about:blank")


async def test_times_are_local_with_utc_in_the_tooltip_and_the_theme_is_kept(
    tab: Page, shop: tuple[str, dict[str, str]]
) -> None:
    async with Site(shop[0]) as site, served(site) as address:
        await tab.goto(address)
        time = tab.locator("#needs time").first
        stamp, shown, hint = (
            await time.get_attribute("datetime") or "",
            await time.inner_text(),
            await time.get_attribute("title") or "",
        )
        local = await tab.evaluate("(at) => new Date(at).toTimeString().slice(0, 5)", stamp)
        assert local in shown
        assert hint.endswith(" UTC")
        assert stamp[11:16] in hint
        assert local != stamp[11:16]
        await tab.get_by_role("button", name="Theme").click()
        theme = await tab.locator("html").get_attribute("data-theme")
        assert theme == "dark"
        await tab.reload()
        assert await tab.locator("html").get_attribute("data-theme") == "dark"
        await tab.goto("about:blank")


async def test_all_of_it_works_without_script(browser: Browser, address: str, stored: Store) -> None:
    context = await browser.new_context(java_script_enabled=False)
    page = await context.new_page()
    await page.goto(f"{address}/queues/mail")
    await page.get_by_role("button", name="Pause…").click()
    await expect(page.locator("main")).to_contain_text("Pause the queue mail?")
    await page.locator("main").get_by_label("Why").fill("tests")
    await page.get_by_role("button", name="Continue").click()
    await expect(page.locator("#said")).to_contain_text("Queue mail is paused.")
    [pause] = await stored.pauses()
    assert pause.why == "tests"
    await context.close()


async def test_hostile_text_opens_no_dialog_and_breaks_no_policy_on_any_page(
    tab: Page, shop: tuple[str, dict[str, str]]
) -> None:
    """The tab fails the test on any dialog, error in the console or report of the policy.

    It is as wide as a phone. What can be seen has contrast and a name, in both themes.
    """
    url, names = shop
    await tab.set_viewport_size({"width": 390, "height": 844})
    async with Site(url) as site, served(site) as address:
        store = await site.backing.store()
        for text in (*HOSTILE, '"><img src=x onerror=alert(1)>', "javascript:alert(1)", "{{7*7}}${7*7}", "</script>"):
            if text.strip():
                args = '{"x": "<img src=x onerror=alert(1)>\\u202e"}'
                await job_in(JobState.DEAD, store, kind=text, queue=text, tags=(text,), args=args)
        for path in paths(names).values():
            answer = await tab.goto(address + path)
            assert answer is not None
            assert answer.status in {200, 400, 404}, path
            await expect(tab.locator("#live")).to_have_text("live")
            for theme in THEMES:
                await tab.emulate_media(color_scheme=theme)
                assert await tab.evaluate(AUDIT) == [], f"{path}, {theme}"
        await tab.goto("about:blank")

"""The page in a real browser: two tabs that never mix, a refresh every 30 s, and a button that sends the id."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from functools import partial

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Error, Page, Request, Route

from perdure.testing import Sandbox
from perdure_systems.kit.browser import find_browser, open_browser
from perdure_systems.kit.web import api
from perdure_systems.notifications.jobs import app, notify
from perdure_systems.notifications.standins import Knobs, StandIns, serve
from perdure_systems.notifications.system import SYSTEM

DEAD, SENT, FAILED = "This one is dead", "This one is sent", "This one has failed"
HOSTILE = "<img src=x onerror=alert(1)>"
REFRESH = 30_000


pytestmark = pytest.mark.asyncio(loop_scope="module")  # one browser for all tests of this file
fixture = partial(pytest_asyncio.fixture, loop_scope="module")


@fixture(scope="module")
async def browser() -> AsyncIterator[Browser]:
    """A real browser; skipped with a message where there is none."""
    if find_browser() is None:
        pytest.skip("no Chromium is installed")
    async with open_browser() as one:
        yield one


@fixture()
async def browser_page(browser: Browser) -> AsyncIterator[Page]:
    """An empty page that shares nothing with those of other tests."""
    async with await browser.new_context() as context:
        page = await context.new_page()
        page.set_default_timeout(20_000)
        yield page


@fixture()
async def receivers(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[StandIns]:
    """A receiver for each channel, on the event loop of this file."""
    async with StandIns() as standins:
        for variable, value in standins.environment().items():
            monkeypatch.setenv(variable, value)
        yield standins


@fixture()
async def box() -> AsyncIterator[Sandbox]:
    """One engine will do: pages read what the API reads."""
    async with Sandbox(app) as sandbox:
        yield sandbox


@fixture()
async def address(box: Sandbox, receivers: StandIns, refuse: Callable[..., None]) -> AsyncIterator[str]:
    """The system with one dead, one sent and one failed notification, served."""
    refuse(-1)
    await notify.enqueue(channel="slack", subject=DEAD, body="b")
    await box.drain(travel=True)
    refuse(0)
    await notify.enqueue(channel="slack", subject=SENT, body="b")
    await box.drain()
    refuse(2)
    await notify.enqueue(channel="slack", subject=FAILED, body="b")
    await box.drain()
    box.travel("1m")
    await box.drain()
    async with serve(api(SYSTEM.routes)) as url:
        yield url


async def subjects(page: Page) -> list[str]:
    return await page.locator("#list tbody td:first-child a").all_inner_texts()


class Held:
    """Answers of the server that arrive only when the test says so."""

    def __init__(self, page: Page) -> None:
        self._page = page
        self._delivered: list[asyncio.Event] = []
        self.waiting: list[asyncio.Event] = []

    async def hold(self, pattern: str) -> None:
        """Let answers to refreshes of this path wait; the page itself comes at once."""
        await self._page.route(re.compile(pattern), self._on_request)

    async def _on_request(self, route: Route, request: Request) -> None:
        if request.resource_type == "document":
            await route.continue_()
            return
        answer = await route.fetch()
        released, delivered = asyncio.Event(), asyncio.Event()
        self.waiting.append(released)
        self._delivered.append(delivered)
        await released.wait()
        with suppress(Error):  # the page that asked may be gone, as it should be
            await route.fulfill(response=answer)
        delivered.set()

    async def arrived(self, number: int) -> None:
        async with asyncio.timeout(20):
            while len(self.waiting) < number:
                await asyncio.sleep(0.02)

    async def release(self, which: int) -> None:
        """Let an answer arrive, and the page deal with it."""
        self.waiting[which].set()
        await self._delivered[which].wait()
        await self._page.evaluate("fetch('/static/system.css').then((answer) => answer.text())")


async def test_a12_two_tabs_and_a_slow_answer_of_one_never_shows_under_the_other(
    browser_page: Page, address: str
) -> None:
    """A refresh of each tab is under way when the other tab is opened, and is answered afterwards."""
    held = Held(browser_page)
    await held.hold(r"^[^?]*:\d+/(dead)?$")
    await browser_page.clock.install()
    await browser_page.goto(address)
    assert await browser_page.get_by_role("tab").all_inner_texts() == ["All", "Dead letter"]
    assert await subjects(browser_page) == [FAILED, SENT, DEAD]
    await browser_page.clock.fast_forward(REFRESH)
    await held.arrived(1)
    await browser_page.get_by_role("tab", name="Dead letter").click()
    await browser_page.wait_for_url("**/dead")
    assert await browser_page.get_by_role("tab", selected=True).inner_text() == "Dead letter"
    assert await subjects(browser_page) == [DEAD]
    await held.release(0)
    assert await subjects(browser_page) == [DEAD]

    await browser_page.clock.fast_forward(REFRESH)
    await held.arrived(2)
    await browser_page.get_by_role("tab", name="All").click()
    await browser_page.wait_for_url(address + "/")
    await held.release(1)
    assert await subjects(browser_page) == [FAILED, SENT, DEAD]


async def test_a12_an_answer_for_another_address_is_dropped(browser_page: Page, address: str) -> None:
    """Even if the address changes without loading the page, the old address's answer is not shown."""
    held = Held(browser_page)
    await held.hold(r"^[^?]*:\d+/(dead)?$")
    await browser_page.clock.install()
    await browser_page.goto(f"{address}/dead")
    await browser_page.evaluate("history.pushState({}, '', '/')")
    await browser_page.clock.fast_forward(REFRESH)  # asks for All
    await held.arrived(1)
    await browser_page.evaluate("history.pushState({}, '', '/dead')")
    await held.release(0)
    assert await subjects(browser_page) == [DEAD]


async def test_a12_an_older_answer_does_not_overwrite_a_newer_one(
    browser_page: Page, address: str, box: Sandbox
) -> None:
    """A refresh from before a requeue arrives after the one from behind it: the letter does not come back."""
    held = Held(browser_page)
    await held.hold(r"/dead$")
    await browser_page.clock.install()
    await browser_page.goto(f"{address}/dead")
    await browser_page.clock.fast_forward(REFRESH)
    await held.arrived(1)
    await browser_page.get_by_role("button", name="Requeue").click()
    await held.arrived(2)
    await held.release(1)
    await browser_page.get_by_text("No dead letters").wait_for()
    await held.release(0)
    assert await subjects(browser_page) == []


async def test_a12_the_list_shows_retries_cuts_long_errors_and_is_loaded_again_every_30_seconds(
    browser_page: Page, address: str, box: Sandbox, receivers: StandIns
) -> None:
    alerts: list[str] = []
    browser_page.on("dialog", lambda dialog: alerts.append(dialog.message))
    receivers.knobs["teams"] = Knobs(failing=-1, status=500, text=HOSTILE * 9)
    handle = await notify.enqueue(channel="teams", subject=HOSTILE, body=HOSTILE)
    await box.drain()
    await browser_page.clock.install()
    await browser_page.goto(address)
    told = await browser_page.locator("#list tbody .retry").all_inner_texts()
    assert told == ["Retry 1/5", "Retry 2/5", "Retry 5/5"]

    error = browser_page.locator("tbody tr").first.locator(".error-text span")
    shown, title = await error.inner_text(), await error.get_attribute("title") or ""
    assert title == f"teams answered 500 Internal Server Error: {HOSTILE * 9}"
    assert ((await handle.view()).last_error or "").endswith(title)
    assert (len(shown), shown[-1], title.startswith(shown[:-1])) == (90, "…", True)
    assert await browser_page.locator("#list img").count() == 0
    assert alerts == []

    asked: list[str] = []

    def note(request: Request) -> None:
        if request.resource_type == "fetch":
            asked.append(request.url)

    browser_page.on("request", note)
    await notify.using(delay="1h").enqueue(channel="slack", subject="A new one", body="b")
    await browser_page.clock.fast_forward(REFRESH - 12_000)  # the clock goes on by itself, too
    assert asked == []
    await browser_page.clock.fast_forward(12_000)
    await browser_page.get_by_text("A new one").wait_for()
    assert asked == [f"{address}/"]


async def test_a12_requeue_sends_the_id_and_nothing_else(
    browser_page: Page, address: str, box: Sandbox, refuse: Callable[..., None]
) -> None:
    """If another operator was faster, the page says so and nothing happens."""
    [dead] = await box.dead()
    await browser_page.goto(f"{address}/dead")
    async with browser_page.expect_request(lambda request: request.method == "POST") as sent:
        await browser_page.get_by_role("button", name="Requeue").click()
    request = await sent.value
    assert request.url == f"{address}/api/v1/notifications/{dead.id}/requeue"
    assert (request.post_data, request.headers.get("content-type")) == (None, None)
    await browser_page.get_by_text("No dead letters").wait_for()
    assert (await box.job(dead.id)).state == "ready"

    refuse(-1)
    await box.drain(travel=True)
    await browser_page.goto(f"{address}/dead")
    await (await app.desk("another operator")).requeue(dead.id)
    await browser_page.get_by_role("button", name=f"Requeue {DEAD}").click()
    await browser_page.get_by_text("the notification is pending: only a dead one is requeued").wait_for()


async def test_a12_on_a_phone_nothing_scrolls_sideways_and_the_form_sends_one(
    browser_page: Page, address: str, box: Sandbox, receivers: StandIns, refuse: Callable[..., None]
) -> None:
    [dead] = await box.dead()
    await browser_page.set_viewport_size({"width": 390, "height": 800})
    for path in ("/", "/dead", "/new", f"/notifications/{dead.id}"):
        await browser_page.goto(address + path)
        for selector in ("html", ".panel"):
            wide = await browser_page.locator(selector).evaluate_all(
                "all => all.filter(one => one.scrollWidth > one.clientWidth + 1).length"
            )
            assert wide == 0, f"{selector} of {path}"

    refuse(0)
    await browser_page.goto(f"{address}/new")
    await browser_page.get_by_label("Channel").select_option("pagerduty")
    await browser_page.get_by_label("Subject").fill("From the form")
    await browser_page.get_by_label("Body").fill("b")
    await browser_page.get_by_role("button", name="Send").click()
    await browser_page.get_by_text("The notification is on its way").wait_for()
    await box.drain()
    assert [one.content["payload"]["summary"] for one in receivers.taken["pagerduty"]] == ["From the form"]

"""Open pages under the hands of an operator: what is read, pointed at or asked about stays while the world changes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from playwright.async_api import Locator, Page, Request, Route, expect
from tests.support.builders.jobs import apply, claim_some, employ, enqueue, show, state_of

from perdure.domain.jobs.ids import JobId
from perdure.domain.jobs.outcome import Failure
from perdure.domain.jobs.states import JobState, Reason
from perdure.domain.jobs.transition import died
from perdure.domain.schedule import Schedule
from perdure.errors import StoreUnavailable
from perdure.operate.desk import Desk
from perdure.storage.port import Store

pytestmark = pytest.mark.slow
LOOK_AWAY_AND_BACK = """() => {
  for (const hidden of [true, false]) {
    Object.defineProperty(document, "hidden", { get: () => hidden, configurable: true });
    document.dispatchEvent(new Event("visibilitychange"));
  }
}"""

WIDER_THAN_ITS_PLACE = """() => [...document.querySelectorAll("table")]
  .filter((table) => {
    const place = table.parentElement, edge = parseFloat(getComputedStyle(place).paddingRight);
    return table.getBoundingClientRect().right > place.getBoundingClientRect().right - edge + 1;
  })
  .map((table) => table.getAttribute("aria-label"))"""


async def dead(store: Store, kind: str, **changes: Any) -> JobId:
    """A dead letter of a kind, in a queue of its name."""
    job_id = await enqueue(store, kind=kind, queue=kind, **changes)
    [claim] = await claim_some(store, await employ(store, queues=(kind,)), 1, kind)
    await apply(store, died(claim, Reason.EXHAUSTED, Failure("TimeoutError", "the gateway gave up")))
    return job_id


async def top_of(row: Locator) -> float:
    """How far below the upper edge of the window something is."""
    box = await row.bounding_box()
    assert box is not None
    return box["y"]


@asynccontextmanager
async def back_in_sight(tab: Page) -> AsyncIterator[list[Request]]:
    """Look at another tab and back, so that the page asks for what is new; the requests it made until it is live."""
    made: list[Request] = []

    def note(request: Request) -> None:
        made.append(request)

    tab.on("request", note)
    async with tab.expect_response("**/live"):
        await tab.evaluate(LOOK_AWAY_AND_BACK)
    await expect(tab.locator("#live")).to_have_text("live")
    yield made
    tab.remove_listener("request", note)


async def test_two_operators_on_one_job_the_second_is_reported_and_keeps_what_the_page_says(
    tab: Page, address: str, stored: Store
) -> None:
    job_id = await dead(stored, "charge")
    await tab.goto(f"{address}/jobs/{job_id}")
    await tab.get_by_role("button", name="Requeue…").click()
    await Desk(stored, "grace").requeue(job_id)
    async with back_in_sight(tab):
        await tab.locator("#confirm").get_by_role("button", name="Requeue").click()
    await expect(tab.locator("main")).to_contain_text("Another operator may have acted.")
    async with back_in_sight(tab) as made:
        assert [request.url for request in made if not request.url.endswith("/live")] == []
    await expect(tab.locator("main")).to_contain_text("Another operator may have acted.")
    await tab.locator("main").get_by_role("link", name="Back").click()
    await expect(tab).to_have_url(f"{address}/jobs/{job_id}")


async def test_a_question_stays_about_what_it_was_asked_for(tab: Page, address: str, stored: Store) -> None:
    """The group is gone when the operator says yes: that is told, and no other group is meant."""
    old, new = await dead(stored, "charge"), await dead(stored, "refund")
    await tab.goto(f"{address}/dead")
    await tab.locator("tr", has_text="charge").get_by_role("button", name="Probe with one…").click()
    await Desk(stored, "grace").requeue(old)
    async with back_in_sight(tab) as made:
        assert [request.url for request in made if not request.url.endswith("/live")] == []
    await tab.locator("#confirm").get_by_role("button", name="Probe with one").click()
    await expect(tab.locator("main")).to_contain_text("has no more dead letters: nothing was requeued")
    assert await state_of(stored, new) is JobState.DEAD


async def test_what_needs_a_person_does_not_move_under_the_pointer(tab: Page, address: str, stored: Store) -> None:
    await dead(stored, "charge")
    await tab.goto(address)
    need = tab.locator(".need", has_text="charge")
    await need.hover()
    before = await top_of(need)
    await dead(stored, "refund")
    await expect(tab.locator("#needs .waiting-rows")).to_have_text("1 new")
    assert await top_of(need) == before
    async with back_in_sight(tab):
        await tab.locator(".waiting-rows").hover()  # on the way to the button the rows stay, too
        await expect(tab.locator(".need", has_text="refund")).to_have_count(0)
    await tab.locator(".waiting-rows").click()
    await expect(tab.locator(".need", has_text="refund")).to_be_visible()
    assert await top_of(tab.locator(".need", has_text="refund")) < before + 1


async def test_rows_stay_under_the_pointer_when_something_above_them_grows(
    tab: Page, address: str, stored: Store
) -> None:
    await tab.set_viewport_size({"width": 1280, "height": 700})
    await tab.goto(address)
    row = tab.locator("#queue-mail")
    await row.hover()
    before = await top_of(row)
    await dead(stored, "charge")
    await expect(tab.locator(".need", has_text="charge")).to_have_count(1)
    assert abs(await top_of(row) - before) < 2


async def test_a_button_that_is_pressed_twice_acts_once(tab: Page, address: str, stored: Store) -> None:
    job_id = await enqueue(stored)
    await tab.goto(f"{address}/jobs/{job_id}")
    posts: list[Request] = []

    async def slowly(route: Route) -> None:
        posts.append(route.request)
        await asyncio.sleep(0.3)  # the second press comes while the answer to the first is awaited
        await route.continue_()

    await tab.route("**/mark", slowly)
    await tab.get_by_role("button", name="Mark…").click()
    await tab.get_by_label("Mark such as seen").fill("seen")
    await tab.evaluate(
        """() => {
          const button = document.querySelector("form[action$='/mark'] button.main");
          button.click();
          setTimeout(() => button.click(), 20);
        }"""
    )
    await expect(tab.locator("#said")).to_be_visible()
    assert len(posts) == 1
    assert (await show(stored, job_id)).mark == "seen"


async def test_rows_that_were_chosen_are_asked_about_and_the_search_stays(
    tab: Page, address: str, stored: Store
) -> None:
    job_id = await dead(stored, "charge")
    await dead(stored, "refund")
    await tab.goto(f"{address}/jobs?q=state%3Adead")
    header = tab.locator("thead")
    before = await top_of(header)
    await tab.get_by_role("checkbox", name=f"Choose {job_id}").check()
    assert await top_of(header) == before
    await tab.get_by_role("button", name="Requeue chosen…").click()
    await expect(tab.locator("#confirm")).to_contain_text("Requeue 1 job?")
    await expect(tab.locator("#confirm code")).to_have_text(f"perdure jobs requeue {job_id}")
    await tab.locator("#confirm").get_by_label("Why").fill("the gateway is back")
    await tab.locator("#confirm").get_by_role("button", name="Requeue chosen").click()
    await expect(tab.locator("#said")).to_contain_text("Requeued 1 job.")
    await expect(tab).to_have_url(f"{address}/jobs?q=state%3Adead")
    [entry] = (await Desk(stored, "ada").audit(job=job_id)).entries
    assert entry.why == "the gateway is back"


async def test_commands_for_all_that_match_are_in_a_menu_that_keys_open_and_close(
    tab: Page, address: str, stored: Store
) -> None:
    await dead(stored, "charge")
    await tab.goto(f"{address}/jobs?q=state%3Adead")
    menu = tab.locator("details.menu summary")
    await menu.focus()
    await tab.keyboard.press("Enter")
    await expect(tab.get_by_role("link", name="Requeue all…")).to_be_visible()
    await tab.keyboard.press("Escape")
    await expect(tab.get_by_role("link", name="Requeue all…")).to_be_hidden()
    await expect(menu).to_be_focused()
    await tab.keyboard.press("Enter")
    await tab.keyboard.press("Tab")
    await tab.keyboard.press("Enter")
    await expect(tab.locator("main")).to_contain_text("1 job matches now.")


async def test_the_menu_is_whole_over_a_short_list_and_no_list_hides_its_last_column(
    tab: Page, address: str, stored: Store
) -> None:
    job_id = await dead(stored, "a_kind_with_a_rather_long_name", args='{"text":"%s"}' % ("long " * 60))
    desk = Desk(stored, "ada")
    [group] = (await desk.failure_groups()).groups
    await desk.calendar.save(Schedule(name="every-night", kind="tidy", expression="0 2 * * *", tz="Europe/Berlin"))
    for width in (800, 1040, 1200, 1280, 1360):
        await tab.set_viewport_size({"width": width, "height": 800})
        for path in (
            "/jobs?q=state%3Adead",
            "/dead",
            f"/dead/{group.fingerprint}",
            "/",
            f"/jobs/{job_id}?tab=attempts",
            "/queues",
            "/schedules",
            "/audit",
        ):
            await tab.goto(address + path)
            hidden = await tab.evaluate(WIDER_THAN_ITS_PLACE)
            assert hidden == [], f"{path} at {width}"
        assert await tab.evaluate("document.querySelector('td.changes').offsetWidth") > width / 4, f"/audit at {width}"
    await tab.goto(f"{address}/jobs?q=state%3Adead")
    await tab.locator("details.menu summary").click()
    last = tab.get_by_role("link", name="Delete all…")
    box = await last.bounding_box()
    assert box is not None
    middle = [box["x"] + box["width"] / 2, box["y"] + box["height"] / 2]
    assert await tab.evaluate("([x, y]) => document.elementFromPoint(x, y).textContent", middle) == "Delete all…"


async def test_a_page_opened_while_the_database_is_away_becomes_the_page_that_was_meant(
    tab: Page, address: str, stored: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def away(*_: object, **__: object) -> None:
        raise StoreUnavailable("cannot connect")

    with monkeypatch.context() as patch:
        for name in ("counts", "count", "now", "workers"):
            patch.setattr(stored, name, away)
        await tab.goto(f"{address}/queues")
        await expect(tab.locator("h1")).to_have_text("No answer from the database")
    await expect(tab.locator("#queue-mail")).to_be_visible()
    await expect(tab.locator("h1")).to_have_text("Queues")


async def test_an_error_can_be_copied_where_the_browser_has_no_clipboard_for_scripts(
    tab: Page, address: str, stored: Store
) -> None:
    """As on a desk that is reached over plain HTTP; also inside a dialog, where the rest of the page is inert."""
    job_id = await dead(stored, "charge")
    await tab.add_init_script("Object.defineProperty(navigator, 'clipboard', { value: undefined });")
    await tab.goto(f"{address}/jobs/{job_id}")
    await tab.get_by_role("button", name="Copy last error").click()
    await expect(tab.get_by_role("button", name="Copy last error")).to_have_text("Copied")
    await tab.get_by_role("button", name="Requeue…").click()
    dialog = tab.locator("#confirm")
    await dialog.locator("[data-copies]").click()
    await expect(dialog.locator("[data-copies]")).to_have_text("Copied")
    await dialog.get_by_label("Why").focus()
    await tab.keyboard.press("Control+V")
    await expect(dialog.get_by_label("Why")).to_have_value(f"perdure jobs requeue {job_id}")

"""The pages in a real browser: signed in, figures, forms and buttons, hostile text, and a phone."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import httpx
import msgspec
import pytest
from playwright.async_api import Page, expect
from systems.tests.engines import on_sqlite
from systems.tests.running import running_system

from perdure.testing import Sandbox
from perdure_systems.flags.office import failing_schedules
from perdure_systems.flags.standins import CacheStandIn
from perdure_systems.flags.system import SYSTEM

from .conftest import ADMIN, MINUTE, NOON, READER, Faults, make_flag, make_schedule, shown

HOSTILE = "<script>document.title='broken'</script>"


@pytest.fixture
async def site(box: Sandbox) -> AsyncIterator[str]:
    """The system's pages at an address of their own, on the sandbox's database and clock."""
    pages_only = msgspec.structs.replace(SYSTEM, apps=(), databases=())
    async with running_system(pages_only, run_jobs=False) as address:
        yield address


@pytest.fixture
async def page(browser_page: Page, site: str) -> Page:
    """A page that is signed in."""
    await browser_page.goto(site)
    await browser_page.get_by_label("Token").fill(ADMIN)
    await browser_page.get_by_role("button", name="Sign in").click()
    await expect(browser_page.get_by_text("signed in as ada")).to_be_visible()
    return browser_page


@on_sqlite
async def test_pages_need_an_admin(client: httpx.AsyncClient) -> None:
    nobody = {"Authorization": ""}
    for path in ("/", "/flags", "/flags/x", "/schedules", "/schedules/x"):
        for headers in (nobody, {"Authorization": f"Bearer {READER}"}):
            answer = await client.get(path, headers=headers)
            assert (answer.status_code, answer.headers["location"]) == (303, "/sign-in")
    for token in ("wrong", "", READER, "x" * 10_000, "%00", "é"):
        answer = await client.post("/sign-in", content=f"token={token}", headers=nobody)
        assert answer.status_code == 401
        assert "set-cookie" not in answer.headers
    answer = await client.post("/sign-in", content=f"token={ADMIN}", headers=nobody)
    assert answer.status_code == 303
    assert "HttpOnly" in answer.headers["set-cookie"]
    assert "SameSite=strict" in answer.headers["set-cookie"]


@on_sqlite
async def test_without_a_token_no_caller_is_an_admin(client: httpx.AsyncClient) -> None:
    bare = httpx.AsyncClient(transport=client._transport, base_url="http://flags")
    assert (await bare.get("/api/admin/flags")).status_code == 401
    assert (await bare.get("/api/admin/flags", headers={"Authorization": "Bearer wrong"})).status_code == 401


@pytest.mark.slow
@on_sqlite
async def test_b14_the_dashboard_shows_retry_metrics_and_retries_by_hand(
    page: Page, site: str, client: httpx.AsyncClient, operator: httpx.AsyncClient, box: Sandbox, faults: Faults
) -> None:
    await make_schedule(client, "good", NOON + MINUTE)
    lost = await make_schedule(client, "lost", NOON + MINUTE, maxRetries=1)
    await faults.break_flag("lost")
    await box.drain(travel="1h")
    await faults.mend()
    await page.goto(site)
    await expect(page.get_by_role("heading", name="1 needs a person")).to_be_visible()
    figures = await page.locator(".figures .panel").all_inner_texts()
    assert [text.replace("\n", " ") for text in figures] == [
        "Applied, 24 h 1 0 of them on a retry",
        "Success 50 % 1 failed, 50 %",
        "Success of retries 0 % 2 tries failed",
        "Backlog 0 due 0 retrying, 0 held, oldest 0 s",
    ]
    links = page.locator("#overview p a[href^='/desk/']")
    paths = [await link.get_attribute("href") for link in await links.all()]
    codes = [(await operator.get(str(path))).status_code for path in paths]
    assert (len(paths), set(codes)) == (4, {200}), "what the engine shows is a link away"
    await page.get_by_role("button", name=f"Retry {lost} of lost").click()
    await expect(page.get_by_text("It is tried again")).to_be_visible()
    await box.drain()
    assert (await shown(client, "lost", lost))["status"] == "applied"
    await page.goto(f"{site}/schedules/{lost}")
    await expect(page.get_by_text("The flag is changed.")).to_be_visible()
    assert await page.locator("td.mono").count() == 2


@on_sqlite
async def test_what_needs_a_person_is_shown_however_many_schedules_are_newer(
    client: httpx.AsyncClient, box: Sandbox, cache: CacheStandIn
) -> None:
    stale = await make_schedule(client, "stale", NOON + MINUTE, maxRetries=0)
    lost = await make_schedule(client, "lost", NOON + MINUTE)
    await client.delete("/api/admin/flags/lost")
    cache.failing = -1
    box.travel("1m")
    await box.drain()
    cache.failing = 0
    for _ in range(3):
        await make_schedule(client, "newer", NOON + 60 * MINUTE)
    assert {one.id for one in await failing_schedules(2)} == {stale, lost}
    text = (await client.get("/")).text
    assert "2 need a person" in text
    assert all(f'data-id="{one}"' in text for one in (stale, lost))


@pytest.mark.slow
@on_sqlite
async def test_a_flag_is_made_switched_and_scheduled_with_forms(
    page: Page, site: str, client: httpx.AsyncClient, box: Sandbox
) -> None:
    await page.goto(f"{site}/flags")
    await page.get_by_label("Key").fill("dark-mode")
    await page.get_by_label("Description").fill(HOSTILE)
    await page.get_by_role("button", name="Make it").click()
    await expect(page.get_by_text(HOSTILE)).to_be_visible()
    assert await page.title() != "broken"
    await page.get_by_role("button", name="Turn dark-mode on").click()
    await expect(page.get_by_role("button", name="Turn dark-mode off")).to_be_visible()
    await page.goto(f"{site}/flags/dark-mode")
    await page.get_by_label("When, UTC").fill("2026-03-01T11:59:59")
    await page.get_by_label("Rollout, %").fill("20")
    await page.get_by_label("Retries").fill("2")
    await page.get_by_role("button", name="Schedule it").click()
    await expect(page.locator("#notice.bad")).to_contain_text("scheduledAt must lie in the future")
    await page.get_by_label("When, UTC").fill("2026-03-01T12:30:00")
    await page.get_by_role("button", name="Schedule it").click()
    await expect(page.get_by_role("link", name="rollout 20")).to_be_visible()
    [made] = (await client.get("/api/admin/flags/dark-mode/schedule")).json()["schedules"]
    assert (made["updates"], made["maxRetries"], made["createdBy"]) == ({"rollout": 20}, 2, "ada")
    await page.get_by_role("button", name=f"Cancel {made['id']}").click()
    await expect(page.locator("tr[data-status=cancelled]")).to_be_visible()
    assert (await shown(client, "dark-mode", made["id"]))["cancelledBy"] == "ada"


@pytest.mark.slow
@on_sqlite
async def test_nothing_scrolls_sideways_on_a_phone(
    page: Page, site: str, client: httpx.AsyncClient, box: Sandbox, faults: Faults
) -> None:
    long = "a-flag-with-a-name-as-long-as-a-name-may-be." * 2
    await make_flag(long[:80])
    failing = await make_schedule(client, "failing", NOON + MINUTE)
    await make_schedule(client, long[:79] + "b", NOON + timedelta(days=1))
    await faults.break_flag("failing")
    box.travel("1m")
    await box.drain()
    await page.set_viewport_size({"width": 390, "height": 800})
    for path in ("/", "/flags", "/flags/failing", "/schedules", f"/schedules/{failing}", "/sign-in", "/flags/none"):
        await page.goto(f"{site}{path}")
        wide = await page.evaluate(
            "[...document.querySelectorAll('main, .panel')].some(e => e.scrollWidth > e.clientWidth + 1)"
        )
        assert not wide, path


BAD_FORMS: list[tuple[dict[str, Any], str | None]] = [
    ({"scheduledAt": "soon"}, "scheduledAt"),
    ({"scheduledAt": "2026-03-02T12:00"}, "updates"),
    ({"scheduledAt": "2026-03-02T12:00", "rollout": "x"}, "rollout"),
    ({"scheduledAt": "2026-03-02T12:00", "enabled": "maybe"}, "enabled"),
    ({"scheduledAt": "2026-03-02T12:00", "enabled": "on", "maxRetries": 15}, None),
]


@on_sqlite
async def test_a_form_that_cannot_be_meant_is_a_400(client: httpx.AsyncClient) -> None:
    await make_flag("dark-mode")
    for form, field in BAD_FORMS:
        answer = await client.post("/forms/flags/dark-mode/schedules", json=form)
        assert (answer.status_code, answer.json().get("field")) == (400, field), form

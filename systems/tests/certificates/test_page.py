"""The pages in a real browser: a person approves a job, hostile text stays text, a phone needs no sideways scroll."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from playwright.async_api import Page
from systems.tests.certificates.programs import Api
from systems.tests.running import running_system

from perdure.testing import Sandbox
from perdure_systems.certificates import loops
from perdure_systems.certificates.jobs import app, database
from perdure_systems.certificates.system import SYSTEM
from perdure_systems.notifications.jobs import app as notifications_app

HOSTILE = "<script>document.title = 'stolen'</script><img src=x onerror=alert(1)>"


@pytest.fixture
async def served() -> AsyncIterator[tuple[str, Sandbox]]:
    """The API and the pages over HTTP; jobs run when the test says so."""
    async with Sandbox(app, periodic=False) as box, Sandbox(notifications_app, url=app.url):
        async with running_system(SYSTEM, run_jobs=False) as address:
            yield address, box
        await database.close()


async def test_people_answer_jobs_with_buttons(served: tuple[str, Sandbox], browser_page: Page) -> None:
    """Approve in the list, or reject on the job's own page, which shows who asked and takes the name of who answers."""
    address, box = served
    async with Api(base_url=address) as client:
        _, good = await client.requested(needs_approval=True, requested_by="linus")
        _, bad = await client.requested(common_name="bad.example", needs_approval=True, requested_by="mallory")
        await box.drain()
        await browser_page.goto(f"{address}/jobs?show=waiting")
        row = browser_page.locator(f"tr[data-job='{good}']")
        assert "linus" in await row.inner_text()
        await row.get_by_role("button", name="Approve").click()
        await row.wait_for(state="detached")
        assert (await client.job(good))["status"] == "Pending"

        await browser_page.locator(f"tr[data-job='{bad}'] a").click()
        assert "mallory" in await browser_page.locator("#job").inner_text()
        await browser_page.locator("summary", has_text="Reject").click()
        form = browser_page.locator("details form")
        await form.get_by_label("Your name").fill("grace")
        await form.get_by_label("Why").fill("not ours")
        await form.get_by_role("button").click()
        await browser_page.get_by_text("Rejected").wait_for()
        await box.drain()
        assert "refused by grace: not ours" in (await client.job(bad))["last_error"]
        await browser_page.goto(f"{address}/jobs")
        assert await row.locator(".chip").inner_text() == "Completed"
        assert await browser_page.locator(f"tr[data-job='{bad}'] .chip").inner_text() == "Failed"


async def test_a_certificate_is_requested_renewed_and_deleted_on_its_pages(
    served: tuple[str, Sandbox], browser_page: Page
) -> None:
    address, box = served
    await browser_page.goto(address)
    await browser_page.get_by_text("No certificates yet").wait_for()
    await browser_page.locator("summary").click()
    await browser_page.get_by_label("Name").fill("new.example")
    await browser_page.get_by_label("Owner").fill("ada")
    await browser_page.get_by_role("button", name="Request").click()
    await browser_page.get_by_role("link", name="new.example").click()
    await box.drain()
    await browser_page.get_by_role("button", name="Renew now").click()
    await browser_page.locator("tbody tr").nth(1).wait_for()  # a second job
    await browser_page.locator("summary").click()
    await browser_page.get_by_role("button", name="Delete").click()
    await browser_page.get_by_text("No certificates yet").wait_for()


async def test_hostile_and_long_text_stays_text_and_inside_a_phone(
    served: tuple[str, Sandbox], browser_page: Page
) -> None:
    address, box = served
    said: list[str] = []
    browser_page.on("dialog", lambda dialog: said.append(dialog.message))
    await browser_page.set_viewport_size({"width": 390, "height": 844})
    async with Api(base_url=address) as client:
        name = "a-very-long-name-that-somebody-chose-for-a-service.in-a-cluster.with-many-parts.region.example"
        certificate, job_id = await client.requested(
            common_name=name, owner=HOSTILE, requested_by=HOSTILE, needs_approval=True
        )
        await client.requested(common_name="waits.example", needs_approval=True, owner="o" * 200)
        await client.post("/api/v1/agents/edge-frankfurt-1/heartbeat")
        await box.drain()
        await client.post(f"/api/v1/jobs/{job_id}/reject", json={"by": HOSTILE[:100], "note": HOSTILE})
        await box.drain()
        await loops.reap()
    for path in ("/", "/jobs", f"/jobs/{job_id}", f"/certificates/{certificate}", "/loops", "/found"):
        await browser_page.goto(f"{address}{path}")
        assert await browser_page.locator("main script, main img").count() == 0
        assert "stolen" not in await browser_page.title()
        wider = (
            "[...document.querySelectorAll('main, .panel')].filter((one) => one.scrollWidth > one.clientWidth).length"
        )
        assert await browser_page.evaluate(wider) == 0, path
    assert said == []


async def test_spans_of_loops_are_reported_in_their_units(served: tuple[str, Sandbox]) -> None:
    async with Api(base_url=served[0]) as client:
        page = (await client.get("/loops")).text
    for every, limit in (("30 s", "30 s"), ("5 min", "2 min"), ("6 h", "30 min"), ("24 h", "5 min")):
        assert f'fixed">{every}</td><td class="number wide-only fixed">{limit}</td>' in page

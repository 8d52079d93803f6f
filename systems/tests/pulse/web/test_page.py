"""The pages in a real browser: jobs with their progress, gates and workers, a parent with its children, money."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.async_api import Page, expect
from systems.tests.pulse.processes import pulse
from systems.tests.pulse.support import put
from tests.support.waiting import until

from perdure.testing import Sandbox
from perdure_systems.pulse.log_lines import public_id
from perdure_systems.pulse.standins import ModelStandin

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("engine_url", ["sqlite"], indirect=True)
async def test_the_pages_show_and_steer_jobs(
    box: Sandbox, engine_url: str, tmp_path: Path, standin: ModelStandin, browser_page: Page
) -> None:
    """Money for two of three pieces: the third is paused until an operator sets another limit. Names are only text."""
    del box
    problems: list[str] = []
    browser_page.on("pageerror", lambda error: problems.append(str(error)))
    browser_page.on("dialog", lambda dialog: problems.append(dialog.message))
    submitted = await put(3, "<img src=x onerror=alert(1)>.txt")
    async with pulse(engine_url, tmp_path, PULSE_DAILY_BUDGET="0.0018") as process:
        await until(lambda: standin.answered == 2)
        await browser_page.goto(process.address)
        row = browser_page.locator("#jobs tbody tr")
        await expect(row).to_contain_text("<img src=x onerror=alert(1)>.txt")
        await expect(row).to_contain_text("2 of 3", timeout=20_000)  # it loads itself again every 5 s
        await expect(browser_page.locator("#top")).to_contain_text("✿")
        await expect(browser_page.locator("#top")).to_contain_text("open")
        await browser_page.goto(f"{process.address}/jobs/{public_id(submitted.job_id)}")
        await expect(browser_page.locator("main")).to_contain_text("waits for its children")
        await expect(browser_page.locator("table")).to_contain_text("budget_exceeded")
        await browser_page.goto(f"{process.address}/money")
        await expect(browser_page.locator("#money")).to_contain_text("100 % spent")
        await browser_page.get_by_label("Most in any 24 hours").fill("1")
        await browser_page.get_by_role("button", name="Set").click()
        await expect(browser_page.locator("#money")).to_contain_text("of 1.00")
        await browser_page.goto(f"{process.address}/?state=completed")
        await expect(browser_page.locator("#jobs tbody tr")).to_contain_text("3 of 3", timeout=20_000)
        await browser_page.goto(f"{process.address}/jobs/{public_id(submitted.job_id)}")
        await browser_page.get_by_role("button", name="Delete").click()
        await browser_page.wait_for_url(f"{process.address}/")  # the page of the job is gone
        await expect(browser_page.locator("#jobs")).to_contain_text("Ingested documents appear here")
        await browser_page.set_viewport_size({"width": 390, "height": 800})
        for path in ("/", "/money", "/jobs/JB_gone"):
            await browser_page.goto(process.address + path)
            hidden = await browser_page.evaluate(
                "document.documentElement.scrollWidth - document.documentElement.clientWidth"
            )
            assert hidden == 0, f"{path} scrolls sideways on a phone"
        await expect(browser_page.locator("main")).to_contain_text("There is no such job")
    assert problems == []

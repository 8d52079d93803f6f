"""What the tests of all systems share. The root conftest has the databases: `engine_url` means both engines."""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections.abc import AsyncIterator, Iterator

import pytest
from playwright.async_api import Page, async_playwright

from perdure_systems.kit.browser import ARGUMENTS, find_browser

LISTENING = re.compile(r"DevTools listening on (ws://\S+)")


@pytest.fixture(scope="session")
def browser_endpoint() -> Iterator[str]:
    """A real browser for the whole run: starting one costs more than most tests. Skipped where there is none."""
    path = find_browser()
    if path is None:
        pytest.skip("no Chromium is installed")
    with tempfile.TemporaryDirectory(prefix="perdure-browser-", ignore_cleanup_errors=True) as profile:
        options = ["--headless", "--remote-debugging-port=0", f"--user-data-dir={profile}", *ARGUMENTS]
        with subprocess.Popen([path, *options], stderr=subprocess.PIPE, text=True, start_new_session=True) as process:
            assert process.stderr is not None
            found = next((found for line in process.stderr if (found := LISTENING.search(line))), None)
            assert found is not None, "Chromium did not start"
            try:
                yield found[1]
            finally:
                process.stderr.close()
                process.terminate()


@pytest.fixture
async def browser_page(browser_endpoint: str) -> AsyncIterator[Page]:
    """An empty page with no cookies, in a browser that other tests use too."""
    async with async_playwright() as playwright:
        browser = await playwright.chromium.connect_over_cdp(browser_endpoint)
        context = await browser.new_context()
        page = await context.new_page()
        page.set_default_timeout(20_000)
        yield page
        await context.close()
        await browser.close()

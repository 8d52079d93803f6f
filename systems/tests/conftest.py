"""What the tests of all systems share. The root conftest has the databases: `engine_url` means both engines."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest
from playwright.async_api import Page, expect
from tests.support.web.browser import PATIENCE, connected, find_browser, running_browser

expect.set_options(timeout=PATIENCE * 1_000)


@pytest.fixture(scope="session")
def browser_endpoint() -> Iterator[str]:
    """A real browser for the whole run: starting one costs more than most tests. Skipped where there is none."""
    path = find_browser()
    if path is None:
        pytest.skip("no Chromium is installed")
    with running_browser(path) as endpoint:
        yield endpoint


@pytest.fixture
async def browser_page(browser_endpoint: str) -> AsyncIterator[Page]:
    """An empty page with no cookies, in a browser that other tests use too."""
    async with connected(browser_endpoint) as browser:
        context = await browser.new_context()
        page = await context.new_page()
        page.set_default_timeout(PATIENCE * 1_000)
        yield page
        await context.close()

"""What the tests of all systems share. The root conftest has the databases: `engine_url` means both engines."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from playwright.async_api import Page

from perdure_systems.kit.browser import find_browser, open_browser


@pytest.fixture
async def browser_page() -> AsyncIterator[Page]:
    """An empty page of a real browser; skipped with a message where there is none."""
    if find_browser() is None:
        pytest.skip("no Chromium is installed")
    async with open_browser() as browser:
        page = await browser.new_page()
        page.set_default_timeout(20_000)
        yield page

"""What the tests of all systems share. The root conftest has the databases: `engine_url` means both engines."""

from __future__ import annotations

import re
import subprocess
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from playwright.async_api import Page, async_playwright, expect

from perdure_systems.kit.browser import ARGUMENTS, find_browser

LISTENING = re.compile(r"DevTools listening on (ws://\S+)")
PATIENCE = 60  # seconds, on a machine that does much else
expect.set_options(timeout=PATIENCE * 1_000)


@pytest.fixture(scope="session")
def browser_endpoint() -> Iterator[str]:
    """A real browser for the whole run: starting one costs more than most tests. Skipped where there is none."""
    path = find_browser()
    if path is None:
        pytest.skip("no Chromium is installed")
    with tempfile.TemporaryDirectory(prefix="perdure-browser-", ignore_cleanup_errors=True) as profile:
        options = ["--headless", "--remote-debugging-port=0", f"--user-data-dir={profile}", *ARGUMENTS]
        said = Path(profile) / "stderr"  # a file, for a pipe that nobody reads would stop it when it is full
        with (
            said.open("wb") as errors,
            subprocess.Popen([path, *options], stderr=errors, start_new_session=True) as process,
        ):
            try:
                yield _endpoint(process, said)
            finally:
                process.terminate()


def _endpoint(process: subprocess.Popen[bytes], said: Path) -> str:
    deadline = time.monotonic() + PATIENCE
    while (found := LISTENING.search(said.read_text(errors="replace"))) is None:
        assert process.poll() is None, f"Chromium did not start: {said.read_text(errors='replace')}"
        assert time.monotonic() < deadline, "Chromium takes too long to start"
        time.sleep(0.02)
    return found[1]


@pytest.fixture
async def browser_page(browser_endpoint: str) -> AsyncIterator[Page]:
    """An empty page with no cookies, in a browser that other tests use too."""
    async with async_playwright() as playwright:
        browser = await playwright.chromium.connect_over_cdp(browser_endpoint)
        context = await browser.new_context()
        page = await context.new_page()
        page.set_default_timeout(PATIENCE * 1_000)
        yield page
        await context.close()
        await browser.close()

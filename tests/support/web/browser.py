"""A real browser for tests of pages and for pictures: Chromium without a window, as Debian installs it."""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Final

from playwright.async_api import Browser, Playwright, async_playwright
from playwright.async_api import TimeoutError as Timeout

_PROGRAMS: Final = ("chromium", "chromium-browser", "google-chrome", "chrome")
_LISTENING: Final = re.compile(r"DevTools listening on (ws://\S+)")
_TRIES: Final = 3
PATIENCE: Final = 60  # seconds, on a machine that does much else
ARGUMENTS: Final = (
    "--no-sandbox",  # as root, Chromium has no sandbox of its own
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--hide-scrollbars",  # pictures are as wide as the page
)


def find_browser() -> str | None:
    """The path of a Chromium, None if there is none."""
    return next((path for name in _PROGRAMS if (path := shutil.which(name))), None)


@contextmanager
def running_browser(path: str) -> Iterator[str]:
    """Start a browser of its own process for the block; the address at which any event loop can connect to it."""
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


@asynccontextmanager
async def connected(endpoint: str) -> AsyncIterator[Browser]:
    """Connect to a browser that runs."""
    async with async_playwright() as playwright:
        browser = await _connect(playwright, endpoint)
        try:
            yield browser
        finally:
            await browser.close()


async def _connect(playwright: Playwright, endpoint: str) -> Browser:
    """A connection to a browser that has only just started may hang for good; another one does not."""
    for _ in range(_TRIES - 1):
        with suppress(Timeout):
            return await playwright.chromium.connect_over_cdp(endpoint, timeout=PATIENCE * 1_000 / _TRIES)
    return await playwright.chromium.connect_over_cdp(endpoint, timeout=PATIENCE * 1_000)


def _endpoint(process: subprocess.Popen[bytes], said: Path) -> str:
    deadline = time.monotonic() + PATIENCE
    while (found := _LISTENING.search(said.read_text(errors="replace"))) is None:
        assert process.poll() is None, f"Chromium did not start: {said.read_text(errors='replace')}"
        assert time.monotonic() < deadline, "Chromium takes too long to start"
        time.sleep(0.02)
    return found[1]

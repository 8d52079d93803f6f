"""Chromium without a window, as Debian and other systems install it."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from playwright.async_api import Browser, async_playwright

_PROGRAMS: Final = ("chromium", "chromium-browser", "google-chrome", "chrome")
ARGUMENTS: Final = (
    "--no-sandbox",  # as root, Chromium has no sandbox of its own
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
)


class BrowserMissing(Exception):  # noqa: N818 - says what is the case
    """There is no Chromium on this machine."""


def find_browser() -> str | None:
    """The path of a Chromium, None if there is none."""
    return next((path for name in _PROGRAMS if (path := shutil.which(name))), None)


@asynccontextmanager
async def open_browser() -> AsyncIterator[Browser]:
    """Start a browser for the block; raises `BrowserMissing`."""
    path = find_browser()
    if path is None:
        raise BrowserMissing("no Chromium is installed: install the package chromium")
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            executable_path=path,
            args=list(ARGUMENTS),
            handle_sigint=False,  # Ctrl-C is for the program, which lets running work finish first
            handle_sigterm=False,
            handle_sighup=False,
        )
        try:
            yield browser
        finally:
            await browser.close()

"""The slow parts of an audit behind three methods, so that tests and benchmarks can put quick ones in their place."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from typing import Any, Final, Protocol

from playwright.async_api import Page

from perdure_systems.audits import settings
from perdure_systems.audits.pipeline.browsing import Chromium
from perdure_systems.audits.pipeline.egress import open_egress
from perdure_systems.audits.pipeline.pagespeed import run_pagespeed
from perdure_systems.audits.pipeline.timings import measure_with_browser
from perdure_systems.audits.results import PageSpeed, Size, Strategy

SIZES: Final[dict[Size, tuple[int, int]]] = {"desktop": (1920, 1080), "mobile": (375, 812)}
_PHONE: Final = (
    "Mozilla/5.0 (Linux; Android 14; Pixel 8) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/130.0 Mobile Safari/537.36"
)
_LOAD_TIMEOUT_MS: Final = 45_000
_WAIT_AFTER_LOAD_MS: Final = 400


class Instruments(Protocol):
    """What an audit needs of the outside world."""

    async def measure(self, url: str, strategy: Strategy) -> PageSpeed:
        """Measure a page."""

    async def photograph(self, url: str, size: Size) -> bytes:
        """A picture of a page, as JPEG."""

    async def print_pdf(self, html: str, footer: str) -> bytes:
        """A document as PDF."""

    async def close(self) -> None:
        """Give back what was opened; it is opened again when needed."""


class RealInstruments:
    """The PageSpeed API, or Chromium where none is set; pictures and PDF always by Chromium."""

    def __init__(self, chromium: Chromium | None = None) -> None:
        self._chromium = chromium or Chromium()
        self._stack = AsyncExitStack()
        self._proxy: str | None = None

    async def measure(self, url: str, strategy: Strategy) -> PageSpeed:
        """Measure a page with the API, or with the browser's own timings."""
        if settings.pagespeed_url():
            return await run_pagespeed(url, strategy)
        async with self._outside(strategy) as page:
            return await measure_with_browser(page, url, strategy)

    async def photograph(self, url: str, size: Size) -> bytes:
        """A picture of the page as it is seen first, in exactly this size."""
        async with self._outside(size) as page:
            await page.goto(url, wait_until="load", timeout=_LOAD_TIMEOUT_MS)
            await page.wait_for_timeout(_WAIT_AFTER_LOAD_MS)
            return await page.screenshot(type="jpeg", quality=85, timeout=_LOAD_TIMEOUT_MS)

    async def print_pdf(self, html: str, footer: str) -> bytes:
        """A document as PDF, rendered without scripts and without a network."""
        async with self._chromium.page(java_script_enabled=False, offline=True) as page:
            await page.set_content(html, wait_until="load")
            return await page.pdf(
                format="A4",
                print_background=True,
                display_header_footer=True,
                header_template="<span></span>",
                footer_template=footer,
                prefer_css_page_size=True,
                tagged=True,
                outline=True,
            )

    async def close(self) -> None:
        """End the browser."""
        await self._chromium.close()
        stack, self._stack, self._proxy = self._stack, AsyncExitStack(), None
        await stack.aclose()

    @asynccontextmanager
    async def _outside(self, size: Size) -> AsyncIterator[Page]:
        width, height = SIZES[size]
        options: dict[str, Any] = {"viewport": {"width": width, "height": height}, "service_workers": "block"}
        if size == "mobile":
            options |= {"is_mobile": True, "has_touch": True, "user_agent": _PHONE}
        if not settings.allow_private_addresses():
            if self._proxy is None:
                self._proxy = await self._stack.enter_async_context(open_egress())
            options["proxy"] = {"server": self._proxy}
        async with self._chromium.page(**options) as page:
            yield page


_used: Instruments = RealInstruments()


def instruments() -> Instruments:
    """Those in use."""
    return _used


@contextmanager
def using_instruments(others: Instruments) -> Iterator[None]:
    """Put others in place for the block."""
    global _used  # noqa: PLW0603 - one place, restored at the end of the block
    before, _used = _used, others
    try:
        yield
    finally:
        _used = before

"""One Chromium for all audits of a worker, started when it is first needed and again when it is gone."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import structlog
from playwright.async_api import Browser, Page

from perdure_systems.kit.browser import open_browser

log = structlog.get_logger("perdure_systems.audits")


class Chromium:
    """Pages of one browser: `async with chromium.page(viewport=…) as page`."""

    def __init__(self) -> None:
        self._stack = AsyncExitStack()
        self._browser: Browser | None = None
        self._starting = asyncio.Lock()

    @asynccontextmanager
    async def page(self, **context_options: Any) -> AsyncIterator[Page]:
        """A page in a context of its own, without cookies or cache of others."""
        browser = await self._running()
        context = await browser.new_context(accept_downloads=False, **context_options)
        try:
            yield await context.new_page()
        finally:
            if browser.is_connected():
                await context.close()

    async def close(self) -> None:
        """End the browser; the next page starts another one."""
        self._starting = asyncio.Lock()  # the next use may be on another event loop
        await self._end()

    async def _running(self) -> Browser:
        async with self._starting:
            if self._browser is not None and not self._browser.is_connected():
                log.warning("browser is gone, starting another one")
                await self._end()
            if self._browser is None:
                self._browser = await self._stack.enter_async_context(open_browser())
            return self._browser

    async def _end(self) -> None:
        stack, self._stack, self._browser = self._stack, AsyncExitStack(), None
        await stack.aclose()

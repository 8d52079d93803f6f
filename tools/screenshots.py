"""Pictures of every page of the web desk: light, dark, and as wide as a phone.

    python tools/screenshots.py FOLDER [--only overview,queues] [--url sqlite:///…]
    python tools/screenshots.py docs/images --docs          the pictures of README and docs

Starts a desk on a seeded database of its own (or on `--url`, which is left as it is), and needs Chromium.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, NamedTuple

from playwright.async_api import Browser

ROOT: Final = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

import structlog  # noqa: E402 - the root comes first
from tests.support.web.browser import connected, find_browser, running_browser  # noqa: E402 - the root comes first
from tests.support.web.desk_pages import paths  # noqa: E402
from tests.support.web.desk_seed import seed  # noqa: E402
from tests.support.web.desk_site import served  # noqa: E402
from tools.small_png import shrink  # noqa: E402

from perdure.app.connect import store_for  # noqa: E402
from perdure.surfaces.server.site import Site  # noqa: E402


class Look(NamedTuple):
    """How a page is looked at."""

    name: str
    scheme: str
    width: int
    height: int


LOOKS: Final = (Look("light", "light", 1360, 860), Look("dark", "dark", 1360, 860), Look("phone", "light", 390, 844))


class Shown(NamedTuple):
    """A picture of the docs: the upper part of a page."""

    page: str
    look: Look


DOCS: Final = {
    "desk": Shown("overview", Look("light", "light", 1360, 1130)),
    "desk-job": Shown("job-log", Look("light", "light", 1360, 870)),
    "desk-dead": Shown("dead", Look("dark", "dark", 1360, 640)),
    "desk-phone": Shown("overview", Look("phone", "light", 390, 844)),
}


async def shoot(browser: Browser, address: str, pages: dict[str, str], folder: Path) -> int:
    """Take all pictures; how many pages scroll sideways or complain."""
    return sum([await _shoot_as(look, browser, address, pages, folder) for look in LOOKS])


async def shoot_docs(browser: Browser, address: str, pages: dict[str, str], folder: Path) -> int:
    """Take the pictures of README and docs, and make them small."""
    for name, (page, look) in DOCS.items():
        tab = await browser.new_page(**_looked_at(look), timezone_id="UTC")
        await tab.goto(address + pages[page])
        await tab.wait_for_timeout(400)
        (folder / f"{name}.png").write_bytes(shrink(await tab.screenshot()))
        await tab.close()
    return 0


def _looked_at(look: Look) -> dict[str, Any]:
    return {
        "viewport": {"width": look.width, "height": look.height},
        "color_scheme": look.scheme,
        "device_scale_factor": 2 if look.name == "phone" else 1,
    }


async def _shoot_as(look: Look, browser: Browser, address: str, pages: dict[str, str], folder: Path) -> int:
    faults = 0
    complaints: list[str] = []
    context = await browser.new_context(**_looked_at(look), timezone_id="Europe/Berlin")
    page = await context.new_page()
    page.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    for name, path in pages.items():
        complaints.clear()
        answer = await page.goto(address + path)
        await page.wait_for_timeout(400)
        await page.screenshot(path=folder / f"{name}-{look.name}.png", full_page=True)
        wide = await page.evaluate("document.documentElement.scrollWidth - innerWidth")
        heard = [one for one in complaints if "404" not in one]
        faults += bool(heard) or wide > 0
        status = answer.status if answer else 0
        print(f"{name}-{look.name}.png {status} {'scrolls sideways ' if wide > 0 else ''}{' '.join(heard)}")
    await context.close()
    return faults


async def main() -> int:
    """Seed, serve, shoot."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", default="")
    parser.add_argument("--url", default="")
    parser.add_argument("--docs", action="store_true")
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    logging.disable(logging.INFO)
    structlog.configure(logger_factory=structlog.ReturnLoggerFactory())
    with TemporaryDirectory(prefix="perdure-desk-") as home:
        url = given.url or f"sqlite:///{home}/shop.db"
        names: dict[str, str] = {}
        if not given.url:
            await _migrate(url)
            names = await seed(url)
        wanted = set(given.only.split(",")) - {""}
        pages = {name: path for name, path in paths(names).items() if not wanted or name in wanted}
        path = find_browser()
        if path is None:
            print("There is no Chromium: install the package chromium.")
            return 1
        with running_browser(path) as endpoint:
            async with Site(url) as site, served(site) as address, connected(endpoint) as browser:
                if given.docs:
                    return await shoot_docs(browser, address, pages, given.folder)
                return await shoot(browser, address, pages, given.folder)


async def _migrate(url: str) -> None:
    store = store_for(url)
    await store.open()
    await store.migrate()
    await store.close()


if __name__ == "__main__":
    sys.exit(1 if asyncio.run(main()) else 0)

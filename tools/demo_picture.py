"""Make docs/images/demo.png: pages of the demo's systems in the middle of their work. Needs Chromium."""

from __future__ import annotations

import asyncio
import base64
import tempfile
from pathlib import Path
from typing import Any, Final

import httpx
from playwright.async_api import Browser

from perdure_systems.authorities.standins import new_request
from perdure_systems.demo.outside import ADMIN_TOKEN, World
from perdure_systems.demo.processes import pages_part, read_addresses, worker_part
from perdure_systems.kit.browser import open_browser

PICTURE: Final = Path(__file__).resolve().parent.parent / "docs" / "images" / "demo.png"
_PORT: Final = 8380
_WIDTH, _HEIGHT = 1240, 620
_SETTLE: Final = 12.0  # seconds for the work to get under way
_SHOWN: Final = (("notifications", "/"), ("pulse", "/"), ("authorities", "/"), ("audits", "/"))


async def main() -> None:
    """Start the demo, give it work, take the pictures, and lay them side by side."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        async with World(folder, f"sqlite:///{folder / 'demo.db'}") as world:
            parts = [worker_part(1, world.environment, folder), pages_part(world.environment, folder, _PORT)]
            try:
                addresses = read_addresses(await parts[1].start())
                await parts[0].start()
                await give_work(world, addresses)
                await asyncio.sleep(_SETTLE)
                await take_picture(addresses)
            finally:
                world.model.open.set()
                for part in parts:
                    await part.stop()


async def give_work(world: World, addresses: dict[str, str]) -> None:
    """Work that succeeds, waits, retries and degrades."""
    headers = {"Authorization": f"Bearer {ADMIN_TOKEN}"}
    async with httpx.AsyncClient(timeout=60, headers=headers) as client:

        async def post(system: str, path: str, body: dict[str, Any]) -> None:
            (await client.post(f"{addresses[system]}{path}", json=body)).raise_for_status()

        world.receivers.knobs["slack"].failing = -1
        messages = (("email", "Backup done"), ("slack", "Disk full on db-1"), ("pagerduty", "Payments are down"))
        for channel, subject in messages:
            body = {"channel": channel, "subject": subject, "body": subject, "recipient": "ops@example.org"}
            await post("notifications", "/api/v1/notifications", body)
        world.authorities.digicert.behaviour.approve_after = None
        for authority, name in (("digicert", "shop.example"), ("entrust", "bank.example"), ("sectigo", "api.example")):
            await post("authorities", "/api/v1/orders", {"authority": authority, "csr": new_request(name)})
        for page in (world.sites.page, world.refusing_page):
            await post("audits", "/api/v1/scan", {"url": page})
        await post("pulse", "/api/pulse/jobs", {"source": "lighthouse.md"})
        await asyncio.sleep(_SETTLE / 2)
        world.model.open.clear()
        await post("pulse", "/api/pulse/jobs", {"source": "night-shift.md"})


async def take_picture(addresses: dict[str, str]) -> None:
    """Screenshots of the pages, two by two."""
    async with open_browser() as browser:
        shots = [await shot(browser, f"{addresses[system]}{path}") for system, path in _SHOWN]
        images = "".join(f'<img src="data:image/png;base64,{base64.b64encode(one).decode()}">' for one in shots)
        style = (
            "body{margin:0;padding:28px;background:#e9e5dc;display:grid;grid-template-columns:1fr 1fr;gap:28px}"
            "img{width:100%;border:1px solid #cfc9bd;border-radius:10px}"
        )
        page = await browser.new_page(viewport={"width": 1600, "height": 200})
        await page.set_content(f"<style>{style}</style>{images}")
        PICTURE.parent.mkdir(exist_ok=True)
        await page.screenshot(path=PICTURE, full_page=True)


async def shot(browser: Browser, address: str) -> bytes:
    """One page, in light colours."""
    page = await browser.new_page(viewport={"width": _WIDTH, "height": _HEIGHT}, color_scheme="light")
    await page.goto(address)
    taken = await page.screenshot()
    await page.close()
    return taken


if __name__ == "__main__":
    asyncio.run(main())

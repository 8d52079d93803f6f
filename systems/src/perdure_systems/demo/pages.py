"""The pages and APIs of all systems in one process, a page that leads to them, and one desk for all of them.

The desk is the same one below `/desk` of every address.

`python -m perdure_systems.demo.pages 8100` prints the addresses as one line of JSON. A free port takes the place of one
that is in use.
"""

from __future__ import annotations

import asyncio
import socket
import sys
from contextlib import AsyncExitStack
from pathlib import Path

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from perdure import SettingsError
from perdure.desk import asgi
from perdure_systems.demo.processes import stop_with_the_tour
from perdure_systems.demo.systems import all_systems
from perdure_systems.kit.pages import DESK, Link, Pages
from perdure_systems.kit.serving import LOOPBACK, bind, serving
from perdure_systems.kit.web import api

ABOUT = {
    "notifications": "Six channels. Retries with backoff, dead letters, requeue.",
    "certificates": "Jobs that wait for a CSR and for approval. Twelve guarded loops.",
    "flags": "Feature flags that change at a time, exactly once, with retries first.",
    "pulse": "Two-phase ingest of documents. Budgets, rates, opening ✿ and closing ❀.",
    "authorities": "Four slow certificate authorities, polled patiently. No worker is held.",
    "audits": "A pipeline that keeps what it has: measure, screenshots, PDF, webhook.",
}
"""What each system shows, in a line."""


async def main(first_port: int) -> None:
    """Serve until SIGTERM, or until the tour is gone."""
    stopping = asyncio.Event()
    stop_with_the_tour(stopping)
    async with AsyncExitStack() as stack:
        addresses: dict[str, str] = {}
        systems = all_systems()
        for system in systems:
            for database in system.databases:
                await database.migrate()
                stack.push_async_callback(database.close)
            await stack.enter_async_context(system.apps[0])
        desk = await stack.enter_async_context(asgi(systems[0].apps[0].url))
        for number, system in enumerate(systems, 1):
            served = api(system.routes, desk=desk)
            served.state.workers = []
            address = await stack.enter_async_context(serving(served, free_port(first_port + number)))
            addresses[system.name] = address
        home = await stack.enter_async_context(serving(api([_home(addresses)], desk=desk), free_port(first_port)))
        print(msgspec.json.encode({"home": home, "desk": f"{home}{DESK}", **addresses}).decode(), flush=True)  # noqa: T201 - the tour reads it
        await stopping.wait()


def free_port(wanted: int) -> socket.socket:
    """The port, or a free one if it is in use."""
    try:
        return bind(LOOPBACK, wanted)
    except SettingsError:
        return bind(LOOPBACK, 0)


def _home(addresses: dict[str, str]) -> Route:
    links = [Link("Overview", "/"), *(Link(name.capitalize(), address) for name, address in addresses.items())]
    pages = Pages("perdure demo", Path(__file__).parent / "templates", links)

    async def show(_: Request) -> Response:
        return pages.render("home.html", here="/", addresses=addresses, about=ABOUT)

    return Route("/", show)


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1])))

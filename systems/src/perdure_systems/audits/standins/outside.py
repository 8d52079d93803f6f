"""Stand-ins for what lies outside: a PageSpeed API, a site to audit, and a receiver of webhooks, over real sockets.

`async with Outside() as outside:` serves all three on the loopback interface, and `python -m
perdure_systems.audits.standins` does so until Ctrl-C and prints the settings that lead there. Each has knobs: a delay,
a status, or a number of failures before it works. `QuickInstruments` take the place of Chromium where its time does not
matter.
"""

from __future__ import annotations

import asyncio
import contextlib
from argparse import ArgumentParser
from base64 import b64decode
from collections import Counter
from typing import Any, Final, Self

import msgspec
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from perdure_systems.audits import settings
from perdure_systems.audits.pipeline.pagespeed import run_pagespeed
from perdure_systems.audits.results import Metric, Opportunity, PageSpeed, Size, Strategy
from perdure_systems.audits.standins.site import PAGE, STYLE, lighthouse
from perdure_systems.kit.serving import bind, serving

_PIXEL: Final = b64decode(
    "/9j/4AAQSkZJRgABAQEASABIAAD/2wBDAAMCAgICAgMCAgIDAwMDBAYEBAQEBAgGBgUGCQgKCgkICQkKDA8MCgsOCwkJDRENDg8QEBEQCgwSExIQEw8Q"
    "EBD/yQALCAABAAEBAREA/8wABgAQEAX/2gAIAQEAAD8A0s8g/9k="
)
_OK_STATUS: Final = 200


class Knobs(msgspec.Struct):
    """After `delay` seconds the first `failures` requests get the status `failure`, all others `status`."""

    status: int = _OK_STATUS
    delay: float = 0
    failures: int = 0
    failure: int = 503

    async def answer(self) -> int:
        """Wait as long as it takes; the status to answer with."""
        await asyncio.sleep(self.delay)
        if self.failures > 0:
            self.failures -= 1
            return self.failure
        return self.status


class Received(msgspec.Struct, frozen=True):
    """One request to the receiver of webhooks."""

    headers: dict[str, str]
    body: bytes

    def json(self) -> dict[str, Any]:
        """The body, decoded."""
        decoded: dict[str, Any] = msgspec.json.decode(self.body)
        return decoded


class Outside:
    """The three services on one port. `calls` counts requests by path."""

    def __init__(self, port: int = 0, host: str = "127.0.0.1") -> None:
        self.pagespeed, self.site, self.receiver = Knobs(), Knobs(), Knobs()
        self.calls = Counter[str]()
        self.measured: list[dict[str, str]] = []
        self.received: list[Received] = []
        self._host, self._port = host, port
        self._address = ""
        self._stack = contextlib.AsyncExitStack()

    async def __aenter__(self) -> Self:
        routes = [
            Route("/runPagespeed", self._run_pagespeed),
            Route("/hook", self._receive, methods=["POST"]),
            Route("/away", self._redirect),
            Route("/site.css", self._style),
            Route("/{path:path}", self._show),
        ]
        ending = {"timeout_graceful_shutdown": 0, "log_level": "critical"}  # a stop does not wait for slow answers
        served = serving(Starlette(routes=routes), bind(self._host, self._port), **ending)
        self._address = await self._stack.enter_async_context(served)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    @property
    def page(self) -> str:
        """A page to audit."""
        return f"{self._address}/"

    @property
    def api(self) -> str:
        """The PageSpeed API."""
        return f"{self._address}/runPagespeed"

    @property
    def hook(self) -> str:
        """The receiver of webhooks."""
        return f"{self._address}/hook"

    async def _run_pagespeed(self, request: Request) -> Response:
        self.calls["pagespeed"] += 1
        self.measured.append(dict(request.query_params))
        status = await self.pagespeed.answer()
        if status != _OK_STATUS:
            return JSONResponse({"error": {"code": status, "message": f"stand-in answers {status}"}}, status)
        return JSONResponse(lighthouse(request.query_params["url"]))

    async def _receive(self, request: Request) -> Response:
        self.calls["hook"] += 1
        self.received.append(Received(dict(request.headers), await request.body()))
        return Response(status_code=await self.receiver.answer())

    async def _show(self, request: Request) -> Response:
        self.calls["site"] += 1
        status = await self.site.answer()
        return HTMLResponse(PAGE.replace("PATH", request.url.path), status)

    async def _style(self, _: Request) -> Response:
        return Response(STYLE, media_type="text/css")

    async def _redirect(self, request: Request) -> Response:
        return Response(status_code=302, headers={"Location": request.query_params["to"]})


class QuickInstruments:
    """Measures, pictures and documents at once. `seconds` is how long each takes.

    What is named in `broken` fails, what is named in `slow` takes so many seconds.
    """

    def __init__(self, seconds: float = 0) -> None:
        self.seconds = seconds
        self.broken: dict[str, Exception] = {}
        self.slow: dict[str, float] = {}
        self.used = Counter[str]()

    async def measure(self, url: str, strategy: Strategy) -> PageSpeed:
        """What the API says if one is set, else the same figures for each page."""
        await self._use("measure")
        if settings.pagespeed_url():
            return await run_pagespeed(url, strategy)
        return PageSpeed(
            source="browser",
            final_url=url,
            scores={"performance": 88 if strategy == "mobile" else 94},
            metrics=[Metric("first-contentful-paint", "First Contentful Paint", 900, "900 ms", "good")],
            opportunities=[Opportunity("Compress the document", "The HTML is sent without gzip or Brotli.", 120)],
            requests=12,
            bytes=340_000,
        )

    async def photograph(self, url: str, size: Size) -> bytes:  # noqa: ARG002 - all pages look the same
        """The smallest picture there is."""
        await self._use(size)
        return _PIXEL

    async def print_pdf(self, html: str, footer: str) -> bytes:
        """No more than the first bytes of a document."""
        await self._use("pdf")
        return b"%PDF-1.7\n" + f"{len(html)} {len(footer)}\n%%EOF".encode()

    async def close(self) -> None:
        """There is nothing to close."""

    async def _use(self, name: str) -> None:
        self.used[name] += 1
        if seconds := self.slow.get(name, self.seconds):
            await asyncio.sleep(seconds)
        if name in self.broken:
            raise self.broken[name]


async def _run(port: int, failing: int, slow: float) -> None:
    async with Outside(port) as outside:
        outside.receiver.failures, outside.pagespeed.delay = failing, slow
        settings_of = {
            "AUDITS_API_TOKEN": "demo",
            "AUDITS_ALLOW_PRIVATE_ADDRESSES": "true",
            "AUDITS_PAGESPEED_URL": outside.api,
            "AUDITS_WEBHOOK_URL": outside.hook,
            "AUDITS_WEBHOOK_SECRET": "demo",
        }
        print(f"# A page to audit: {outside.page}")  # noqa: T201 - a command line prints
        for name, value in settings_of.items():
            print(f"{name}={value}", flush=True)  # noqa: T201 - as above
        await asyncio.Event().wait()


def main() -> None:
    """Run until Ctrl-C."""
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=0, help="the port; 0 takes a free one")
    parser.add_argument("--failing", type=int, default=0, help="so many webhooks are refused with 503")
    parser.add_argument("--slow", type=float, default=0.0, help="seconds that a measurement takes")
    given = parser.parse_args()
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(_run(given.port, given.failing, given.slow))

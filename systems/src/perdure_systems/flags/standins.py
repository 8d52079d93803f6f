"""A small HTTP cache for flags, over a real socket: for tests, and for a demo without any other service.

    async with CacheStandIn() as cache:
        os.environ["FLAG_CACHE_URL"] = cache.url
        cache.failing = 2  # the next two invalidations are refused with 503; -1: all of them

Run alone, it prints the variable to set: `python -m perdure_systems.flags.standins --failing 2`.
"""

from __future__ import annotations

import asyncio
from argparse import ArgumentParser
from contextlib import AsyncExitStack
from http import HTTPStatus
from typing import Any, Self

import msgspec
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from perdure_systems.kit.serving import LOOPBACK, bind, serving


class CacheStandIn:
    """The cache, open while the block runs. `slow` is how many seconds each answer takes."""

    def __init__(self, *, failing: int = 0, slow: float = 0.0, port: int = 0) -> None:
        self.failing, self.slow = failing, slow
        self.copies: dict[str, bytes] = {}
        self.floors: dict[str, int] = {}
        self.invalidations: list[tuple[str, int]] = []
        self.refused = 0
        self.url = ""
        self._port = port
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        routes = [Route("/flags/{key}", self._answer, methods=["GET", "PUT", "DELETE"])]
        served = serving(Starlette(routes=routes), bind(LOOPBACK, self._port))
        self.url = await self._stack.enter_async_context(served)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    async def _answer(self, request: Request) -> Response:
        await asyncio.sleep(self.slow)
        key = request.path_params["key"]
        if request.method == "GET":
            copy = self.copies.get(key)
            return Response(status_code=HTTPStatus.NOT_FOUND) if copy is None else Response(copy)
        if request.method == "PUT":
            return self._put(key, await request.body())
        return self._invalidate(key, int(request.query_params["version"]))

    def _put(self, key: str, copy: bytes) -> Response:
        fields: dict[str, Any] = msgspec.json.decode(copy)
        if fields["version"] < self.floors.get(key, 0):
            return Response(status_code=HTTPStatus.CONFLICT)
        self.copies[key] = copy
        return Response(status_code=HTTPStatus.NO_CONTENT)

    def _invalidate(self, key: str, version: int) -> Response:
        if self.failing:
            self.failing -= 1 if self.failing > 0 else 0
            self.refused += 1
            return Response(status_code=HTTPStatus.SERVICE_UNAVAILABLE)
        self.invalidations.append((key, version))
        self.floors[key] = max(version, self.floors.get(key, 0))
        self.copies.pop(key, None)
        return Response(status_code=HTTPStatus.NO_CONTENT)


async def _run(failing: int, slow: float, port: int) -> None:
    async with CacheStandIn(failing=failing, slow=slow, port=port) as cache:
        print(f"FLAG_CACHE_URL={cache.url}", flush=True)  # noqa: T201 - a program that prints
        await asyncio.Event().wait()


def main() -> None:
    """Run until Ctrl-C."""
    options = ArgumentParser(description="A small HTTP cache for flags.")
    options.add_argument("--failing", type=int, default=0, help="refuse so many invalidations; -1: all")
    options.add_argument("--slow", type=float, default=0.0, help="seconds that each answer takes")
    options.add_argument("--port", type=int, default=0, help="the port; 0: a free one")
    given = options.parse_args()
    try:
        asyncio.run(_run(given.failing, given.slow, given.port))
    except KeyboardInterrupt:
        return


if __name__ == "__main__":
    main()

"""Passes a request to the handler of its route, and turns the result into a response.

Paths are matched part by part before decoding, so that a name may contain a slash, sent as %2F.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from contextlib import nullcontext
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from perdure.surfaces.access.caller import caller_of
from perdure.surfaces.api.decoding import read_body, read_query, refuse_nul, refuse_unread
from perdure.surfaces.api.encoding import encoded
from perdure.surfaces.api.problems import HttpError, answer, problem_of
from perdure.surfaces.api.revisions import Turns
from perdure.surfaces.api.route import Call, Route
from perdure.surfaces.server.place import SEGMENTS
from perdure.surfaces.server.requests import desk_of, site_of

BASE: Final = "/api/v1"
_ABOVE: Final = BASE.count("/")
_REQUEST_LIMIT_SECONDS: Final = 30.0  # seconds for a whole request; each query has a limit of its own
_JSON: Final = "application/json"


class ApiRouter:
    """The API as an ASGI application, made from a table of routes."""

    def __init__(self, routes: Iterable[Route]) -> None:
        self._paths: dict[tuple[str, ...], dict[str, Route]] = {}
        for route in routes:
            parts = tuple(route.path.strip("/").split("/"))
            self._paths.setdefault(parts, {})[route.method] = route
        self._turns = Turns()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        request = Request(scope, receive)
        given: dict[str, Any] = {}
        try:
            response = await self._respond(request, given)
        except Exception as error:  # noqa: BLE001 - every error becomes a problem
            response = answer(*problem_of(error, request.url.path, given))
        await response(scope, receive, send)

    async def _respond(self, request: Request, given: dict[str, Any]) -> Response:
        route, path = self._route(request)
        caller = caller_of(request.scope)
        caller.require(route.scope)
        site = site_of(request)
        call: Call[Any, Any] = Call(request=request, site=site, caller=caller, path=path, turns=self._turns)
        given.update(path)
        refuse_nul(path)
        refuse_unread(request, route)
        if route.query is not None:
            call.query = read_query(request, route.query, given)
        if route.request is not None:
            call.body = await read_body(request, route.request, given)
        async with asyncio.timeout(_REQUEST_LIMIT_SECONDS):
            await site.backing.store()
            call.desk = desk_of(request)
            turn = self._turns.of(route.tag, *path.values()) if route.guarded else nullcontext()
            async with turn:
                result = await route.handler(call)
        if isinstance(result, Response):
            return result
        if result is None:
            return Response(status_code=204, headers=call.headers)
        headers = {"cache-control": "no-store", **call.headers}
        return Response(encoded(result), status_code=route.status, headers=headers, media_type=_JSON)

    def _route(self, request: Request) -> tuple[Route, Mapping[str, str]]:
        parts = request.scope[SEGMENTS][_ABOVE:]
        found = self._paths.get(parts)
        path: dict[str, str] = {}
        if found is None:
            for pattern, methods in self._paths.items():
                if (path_ := _matched(pattern, parts)) is not None:
                    found, path = methods, path_
                    break
        if found is None:
            raise HttpError(404, "no-such-path", f"the API has no path {request.url.path}")
        method = "GET" if request.method == "HEAD" else request.method
        if method not in found:
            allow = ", ".join(sorted({*found, *(["HEAD"] if "GET" in found else [])}))
            raise HttpError(
                405, "method", f"{request.method} is not possible here, only {allow}", headers={"allow": allow}
            )
        return found[method], path


def _matched(pattern: tuple[str, ...], parts: tuple[str, ...]) -> dict[str, str] | None:
    """The values of the names in braces; None: the path does not match."""
    if len(pattern) != len(parts):
        return None
    path: dict[str, str] = {}
    for wanted, part in zip(pattern, parts, strict=True):
        if wanted.startswith("{"):
            if not part:
                return None
            path[wanted[1:-1]] = part
        elif wanted != part:
            return None
    return path

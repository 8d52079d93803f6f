"""The API itself."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from perdure.domain.operate.access import Scope
from perdure.policy.secrets.passwords import without_password
from perdure.surfaces.api.route import Call
from perdure.surfaces.api.router import BASE
from perdure.surfaces.server.requests import path_to
from perdure.version import __version__


class About(Struct, frozen=True, kw_only=True):
    """The version of perdure, the database, and the caller's scope. `kinds` can be enqueued here."""

    version: str
    database: str
    read_only: bool
    caller: str
    scope: Scope
    kinds: tuple[str, ...]


async def show_about(call: Call[None, None]) -> About:
    """Show version, database, the caller's scope, and the kinds that can be enqueued here."""
    backing = call.site.backing
    return About(
        version=__version__,
        database=without_password(backing.url),
        read_only=backing.read_only,
        caller=call.caller.name,
        scope=call.caller.scope,
        kinds=() if backing.app is None else tuple(sorted(backing.app.kinds)),
    )


async def show_openapi(call: Call[None, None]) -> dict[str, Any]:
    """Show this API as an OpenAPI 3.1 document."""
    return {**call.site.openapi(), "servers": [{"url": path_to(call.request, BASE)}]}

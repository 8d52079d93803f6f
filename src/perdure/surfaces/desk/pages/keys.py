"""The page of keyboard shortcuts."""

from __future__ import annotations

from starlette.responses import Response

from perdure.surfaces.desk.rooms import Room
from perdure.surfaces.desk.visit import Visit

room = Room("keys")


@room.page("/keys")
async def keys(visit: Visit) -> Response:
    """All shortcuts."""
    return await visit.page("pages/keys.html", title="Keys")

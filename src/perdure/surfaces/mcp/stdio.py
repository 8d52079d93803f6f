"""The server for agents over stdin and stdout: a client starts it, and stops it by closing them."""

from __future__ import annotations

from perdure.app.app import App
from perdure.surfaces.mcp.ground import Ground
from perdure.surfaces.mcp.identity import user_at_terminal
from perdure.surfaces.mcp.server import make_server
from perdure.surfaces.mcp.settings import McpSettings
from perdure.surfaces.server.backing import Backing


async def serve_stdio(source: App | str, settings: McpSettings) -> None:
    """Serve one client until it disconnects. With `commands` it acts with the rights of the user who started it."""
    backing = Backing(source, read_only=not settings.commands)
    ground = Ground(
        backing.store,
        settings,
        kinds=None if backing.app is None else backing.app.kinds,
        at_terminal=user_at_terminal(commands=settings.commands),
    )
    await backing.store()  # a missing database is reported at once
    try:
        await make_server(ground).run_stdio_async()
    finally:
        await backing.close()

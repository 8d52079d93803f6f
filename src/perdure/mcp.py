"""The desk for agents: a server of the Model Context Protocol. Needs the extra `mcp`.

On the desk it is served at `/mcp`, by `perdure desk --mcp read` or in your own app::

    from perdure.desk import asgi
    from perdure.mcp import McpSettings

    desk = asgi(app, mcp=McpSettings(commands=True))

A client that starts its servers itself uses `perdure mcp`, which is `serve_stdio`.
"""

from __future__ import annotations

from perdure.app.app import App
from perdure.surfaces.mcp.extra import missing_mcp
from perdure.surfaces.mcp.settings import McpSettings

__all__ = ["McpSettings", "serve_stdio"]


async def serve_stdio(source: App | str, settings: McpSettings | None = None) -> None:
    """Serve agents over stdin and stdout until the client goes, by an app or by the URL of a database.

    With an app, retries can be previewed. Nothing else may write to stdout meanwhile.
    """
    try:
        from perdure.surfaces.mcp import stdio  # noqa: PLC0415 - an extra
    except ModuleNotFoundError as error:
        raise missing_mcp(error) from None
    await stdio.serve_stdio(source, settings or McpSettings())

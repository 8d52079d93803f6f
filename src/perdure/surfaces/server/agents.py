"""The MCP server as a part of the desk. Its packages are imported only if it is switched on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from perdure.surfaces.mcp.extra import missing_mcp
from perdure.surfaces.mcp.settings import McpSettings
from perdure.surfaces.server.backing import Backing

if TYPE_CHECKING:
    from perdure.surfaces.mcp.endpoint import McpEndpoint


def endpoint_for(backing: Backing, settings: McpSettings) -> McpEndpoint:
    """The MCP endpoint of a desk; on a read-only desk it offers no commands."""
    try:
        from perdure.surfaces.mcp.endpoint import McpEndpoint  # noqa: PLC0415 - an extra
        from perdure.surfaces.mcp.ground import Ground  # noqa: PLC0415 - as above
    except ModuleNotFoundError as error:
        raise missing_mcp(error) from None
    allowed = replace(settings, commands=settings.commands and not backing.read_only)
    kinds = None if backing.app is None else backing.app.kinds
    return McpEndpoint(Ground(backing.store, allowed, kinds=kinds))

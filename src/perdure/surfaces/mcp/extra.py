"""What to say when the packages of the mcp extra are missing."""

from __future__ import annotations

from typing import Final

from perdure.errors import SettingsError

_PACKAGES: Final = frozenset({"mcp", "mcp_types", "pydantic", "anyio", "starlette", "httpx2", "sse_starlette"})


def missing_mcp(error: ModuleNotFoundError) -> Exception:
    """A sentence that names the extra; any other import error stays as it is."""
    if (error.name or "").partition(".")[0] in _PACKAGES:
        return SettingsError("mcp", f"needs {error.name}, which is not installed: pip install 'perdure[mcp]'")
    return error

"""What to say when the packages of the web extra are missing."""

from __future__ import annotations

from typing import Final

from perdure.errors import SettingsError

_PACKAGES: Final = frozenset({"starlette", "uvicorn", "jinja2", "anyio", "h11"})


def missing_web(error: ModuleNotFoundError) -> Exception:
    """A sentence that names the extra; any other import error stays as it is."""
    if (error.name or "").partition(".")[0] in _PACKAGES:
        return SettingsError("desk", f"needs {error.name}, which is not installed: pip install 'perdure[web]'")
    return error

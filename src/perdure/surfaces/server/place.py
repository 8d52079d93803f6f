"""The path of a site on its server: below its own prefix and that of the app that mounts it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import unquote

from perdure.errors import SettingsError

SEGMENTS: Final = "perdure.segments"
"""The key of the ASGI scope for the parts of the path below the site, each decoded: a name may hold a slash."""


def checked_prefix(prefix: str) -> str:
    """A prefix such as "/perdure"; "" and "/" mean none."""
    if not isinstance(prefix, str) or any(sign in prefix for sign in "?#%\\ ") or "//" in prefix:
        raise SettingsError("prefix", f'must be a path such as "/perdure", got {prefix!r}')
    trimmed = prefix.strip("/")
    return f"/{trimmed}" if trimmed else ""


def placed(scope: Mapping[str, Any], prefix: str) -> dict[str, Any]:
    """The entries of an ASGI scope that hold the path, with `root_path` up to the site.

    A path with the prefix and a path whose prefix a proxy has removed lead to the same page.
    """
    mount = scope.get("root_path", "")
    path: str = scope["path"]
    is_below_mount = _is_below(path, mount)
    rest = path[len(mount) :] if is_below_mount else path
    is_below_prefix = _is_below(rest, prefix)
    rest = (rest[len(prefix) :] if is_below_prefix else rest) or "/"
    above = (mount if is_below_mount else "") + (prefix if is_below_prefix else "")
    raw: bytes = scope.get("raw_path") or path.encode()
    parts = [unquote(part) for part in raw.partition(b"?")[0].decode("latin-1").split("/")[1:]]
    root = mount + prefix
    return {"root_path": root, "path": f"{root}{rest}", SEGMENTS: tuple(parts[above.count("/") :])}


def _is_below(path: str, prefix: str) -> bool:
    return not prefix or path == prefix or path.startswith(f"{prefix}/")

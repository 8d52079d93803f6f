"""From `module:app` to the app."""

from __future__ import annotations

import importlib
import sys
import traceback
from pathlib import Path
from typing import Final

from perdure.app import App
from perdure.errors import PerdureError, SettingsError

_FIELD: Final = "APP"
_EXAMPLE: Final = "write it as module:app, for example jobs:app for `app` in jobs.py"


class AppBroken(PerdureError):  # noqa: N818 - reads as what is the matter with the app
    """The app's own code failed while it was imported."""


def load_app(name: str) -> App:
    """Import the module, with the current directory in reach, and find the app in it."""
    module_name, colon, path = name.partition(":")
    if not (colon and path and all(part.isidentifier() for part in (*module_name.split("."), *path.split(".")))):
        raise SettingsError(_FIELD, f"is not the name of an app: {name!r}; {_EXAMPLE}")
    found = _import(module_name)
    for part in path.split("."):
        if not hasattr(found, part):
            raise SettingsError(_FIELD, f"{name!r}: {_described(found, module_name)} has no {part!r}{_offers(found)}")
        found = getattr(found, part)
    if not isinstance(found, App):
        raise SettingsError(
            _FIELD, f"{name!r} is a {type(found).__name__}, not a perdure.App{_offers(sys.modules[module_name])}"
        )
    return found


def _import(name: str) -> object:
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        missing = error.name or ""
        if name == missing or name.startswith(f"{missing}."):
            raise SettingsError(
                _FIELD, f"names no module {missing!r} here ({here}) or among the installed; {_EXAMPLE}"
            ) from None
        raise AppBroken(f"module {name!r} cannot be imported: {_where(error)}") from error
    except Exception as error:
        raise AppBroken(f"module {name!r} cannot be imported: {_where(error)}") from error


def _where(error: Exception) -> str:
    """The error, and the last line of the app's own code on the way to it."""
    said = "".join(traceback.format_exception_only(error)).strip().splitlines()[-1]
    frames = [(frame.filename, frame.lineno) for frame in traceback.extract_tb(error.__traceback__)]
    if isinstance(error, SyntaxError):
        frames = [(error.filename or "", error.lineno)]
    here = str(Path.cwd())
    own = [frame for frame in frames if frame[0].startswith(here)] or frames
    return f"{said} ({own[-1][0]}, line {own[-1][1]})"


def _described(found: object, module_name: str) -> str:
    return f"module {module_name!r}" if found is sys.modules.get(module_name) else type(found).__name__


def _offers(module: object) -> str:
    apps = (
        sorted(name for name, value in vars(module).items() if isinstance(value, App))
        if hasattr(module, "__dict__")
        else []
    )
    return f"; there is {', '.join(apps)}" if apps else ""

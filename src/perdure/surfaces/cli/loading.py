"""From `module:app` to the app."""

from __future__ import annotations

import importlib
import os
import sys
import traceback
from pathlib import Path
from typing import Final

from perdure.app.app import App
from perdure.errors import PerdureError, SettingsError
from perdure.surfaces.cli.project import URL_VARIABLE, project

_FIELD: Final = "APP"
_EXAMPLE: Final = "write it as module:app, for example jobs:app for `app` in jobs.py"


class AppBroken(PerdureError):  # noqa: N818 - reads as what is the matter with the app
    """The app's own code failed on import."""


def load_app(name: str | None) -> App:
    """Import the module, searching the current directory first, find the app in it, and import what it includes.

    Without a name, use the project's. A function without parameters that returns an app works too.
    """
    own = project()
    name = name or own.app
    if not name:
        raise SettingsError(_FIELD, f"is missing: {_EXAMPLE}; or set PERDURE_APP, or app in [tool.perdure]")
    if own.url is not None:
        os.environ.setdefault(URL_VARIABLE, own.url)  # so that `App()` uses the same database as all commands
    module_name, colon, path = name.removesuffix("()").partition(":")
    if not (colon and path and all(part.isidentifier() for part in (*module_name.split("."), *path.split(".")))):
        raise SettingsError(_FIELD, f"is not the name of an app: {name!r}; {_EXAMPLE}")
    found = _import(module_name, [str(Path.cwd()), *([str(own.folder)] if own.folder else [])])
    for part in path.split("."):
        if not hasattr(found, part):
            raise SettingsError(_FIELD, f"{name!r}: {_described(found, module_name)} has no {part!r}{_offers(found)}")
        found = getattr(found, part)
    app = _made_by(name, found)
    if not isinstance(app, App):
        raise SettingsError(
            _FIELD, f"{name!r} is a {type(app).__name__}, not a perdure.App{_offers(sys.modules[module_name])}"
        )
    try:
        app.import_included()
    except PerdureError:
        raise
    except Exception as error:
        raise AppBroken(f"a module that {name!r} includes cannot be imported: {_where(error)}") from error
    return app


def _made_by(name: str, found: object) -> object:
    """The app itself, or the result of a factory."""
    if isinstance(found, App | type) or not callable(found):
        return found
    try:
        return found()
    except Exception as error:
        raise AppBroken(f"the factory {name!r} failed: {_where(error)}") from error


def _import(name: str, folders: list[str]) -> object:
    sys.path[:0] = [folder for folder in folders if folder not in sys.path]
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        missing = error.name or ""
        if name == missing or name.startswith(f"{missing}."):
            raise SettingsError(
                _FIELD, f"names no module {missing!r}, neither in {folders[0]} nor installed; {_EXAMPLE}"
            ) from None
        raise AppBroken(f"module {name!r} cannot be imported: {_where(error)}") from error
    except Exception as error:
        raise AppBroken(f"module {name!r} cannot be imported: {_where(error)}") from error


def _where(error: Exception) -> str:
    """The error, and the last line of the app's own code in its traceback."""
    message = "".join(traceback.format_exception_only(error)).strip().splitlines()[-1]
    frames = [(frame.filename, frame.lineno) for frame in traceback.extract_tb(error.__traceback__)]
    if isinstance(error, SyntaxError):
        frames = [(error.filename or "", error.lineno)]
    here = str(Path.cwd())
    own = [frame for frame in frames if frame[0].startswith(here)] or frames
    return f"{message} ({own[-1][0]}, line {own[-1][1]})"


def _described(found: object, module_name: str) -> str:
    return f"module {module_name!r}" if found is sys.modules.get(module_name) else type(found).__name__


def _offers(module: object) -> str:
    apps = (
        sorted(name for name, value in vars(module).items() if isinstance(value, App))
        if hasattr(module, "__dict__")
        else []
    )
    return f"; there is {', '.join(apps)}" if apps else ""

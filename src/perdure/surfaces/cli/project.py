"""Project settings for every command: `[tool.perdure]` in the nearest pyproject.toml.

    [tool.perdure]
    app = "shop.jobs:app"
    url = "sqlite:///data/jobs.db"
    queues = "mail:3,default"

An option of the command line comes first, then the environment, then this. A relative SQLite file is relative to the
pyproject.toml, so that a command finds the same database from any folder of the project.
"""

from __future__ import annotations

import os
import tomllib
from functools import cache
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from perdure.app.connect import DEFAULT_URL
from perdure.errors import SettingsError

URL_VARIABLE: Final = "PERDURE_URL"
_FILE: Final = "pyproject.toml"
_TABLE: Final = "[tool.perdure]"
_SQLITE: Final = "sqlite:///"


class Project(Struct, frozen=True):
    """The project's settings; None where one is not set."""

    folder: Path | None = None
    app: str | None = None
    url: str | None = None
    queues: str | None = None


def project() -> Project:
    """The settings of the project that contains the working directory."""
    return _project_above(Path.cwd())


def database_url(given: str | None) -> str:
    """The database of a command: as given, or the project's, or `perdure.db` in the working directory."""
    return given or os.environ.get(URL_VARIABLE) or project().url or DEFAULT_URL


@cache
def _project_above(folder: Path) -> Project:
    for place in (folder, *folder.parents):
        if (file := place / _FILE).is_file():
            table = _table(file)
            if table is not None:
                return _read(file, table)
    return Project()


def _table(file: Path) -> dict[str, Any] | None:
    try:
        document = tomllib.loads(file.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingsError(str(file), f"cannot be read: {error}") from None
    table = document.get("tool", {}).get("perdure")
    if table is not None and not isinstance(table, dict):
        raise SettingsError(f"{_TABLE} in {file}", f"must be a table, got {table!r}")
    return table


def _read(file: Path, table: dict[str, Any]) -> Project:
    known = [field for field in Project.__struct_fields__ if field != "folder"]
    for key, value in table.items():
        if key not in known:
            raise SettingsError(f"{key} in {_TABLE} of {file}", f"is unknown; there is {', '.join(known)}")
        if not isinstance(value, str) or not value:
            raise SettingsError(f"{key} in {_TABLE} of {file}", f"must be text, got {value!r}")
    url = table.get("url")
    if url is not None and url.startswith(_SQLITE) and not url.startswith(f"{_SQLITE}/"):
        url = f"{_SQLITE}{file.parent.absolute()}/{url.removeprefix(_SQLITE)}"
    return Project(file.parent, table.get("app"), url, table.get("queues"))

"""SQL lives in `.sql` files: this loads them and fills in the names of tables.

A file holds statements, each opened by `-- name: …`. Names of tables, indexes and sequences are written `{job}`,
`{ready_order}` and so on, and become schema and prefix plus that name, so that several apps can share a database.
Slots in capitals are constants: see `sql_constants`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta
from importlib.resources import files
from typing import Final

from perdure.engines.shared.database.sql_constants import constant
from perdure.errors import SettingsError

_NAME: Final = re.compile(r"^-- name: (\w+)\s*$", re.MULTILINE)
_SLOT: Final = re.compile(r"\{(\w+)\}")
_IDENTIFIER: Final = re.compile(r"[a-z_][a-z0-9_]{0,30}")


def load_statements(
    package: str, file: str, naming: Callable[[str], str], write_span: Callable[[timedelta], str]
) -> dict[str, str]:
    """Read a file's named statements, with every `{name}` replaced by `naming(name)` and every constant filled in.

    `write_span` writes a span of time as SQL of this engine.
    """
    text = files(package).joinpath("sql", file).read_text(encoding="utf-8")
    pieces = _NAME.split(text)

    def fill(slot: str) -> str:
        return constant(slot, write_span) if slot.isupper() else naming(slot)

    return {name: fill_names(body, fill).strip() for name, body in zip(pieces[1::2], pieces[2::2], strict=True)}


def fill_names(sql: str, naming: Callable[[str], str]) -> str:
    """Replace every `{name}` in a piece of SQL by `naming(name)`."""
    return _SLOT.sub(lambda slot: naming(slot[1]), sql)


def check_identifier(field: str, value: str) -> str:
    """Accept a plain lower-case name for a schema or prefix; it is put into SQL text, so nothing else may pass."""
    if not _IDENTIFIER.fullmatch(value):
        raise SettingsError(field, f"must be lower-case letters, digits and underscores (at most 31), got {value!r}")
    return value

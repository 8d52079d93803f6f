"""From named parameters, as in the statements, to numbered ones, as the server needs them."""

from __future__ import annotations

import re
from typing import Final

_NAMED: Final = re.compile(r"%\((\w+)\)s|%%")


def numbered(sql: str) -> tuple[str, tuple[str, ...]]:
    """A statement with `$1`, `$2` … in place of `%(name)s`, and the names in the order of their numbers."""
    names: list[str] = []

    def number(found: re.Match[str]) -> str:
        name = found[1]
        if name is None:
            return "%"
        if name not in names:
            names.append(name)
        return f"${names.index(name) + 1}"

    return _NAMED.sub(number, sql), tuple(names)

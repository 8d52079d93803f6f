"""Stored JSON as text for people: indented, cut if it is long, with its size. It is never interpreted."""

from __future__ import annotations

import json
from typing import Any, Final

from msgspec import Struct

MOST_CHARACTERS: Final = 20_000
MOST_LINES: Final = 400
_OPEN_LINES: Final = 24


class Document(Struct, frozen=True):
    """A stored document for a page. `size`: bytes of the stored text; `cut`: only its beginning is shown."""

    text: str
    size: int
    lines: int
    cut: bool = False

    @property
    def is_long(self) -> bool:
        """Whether it is folded until the reader opens it."""
        return self.lines > _OPEN_LINES


def document(stored: str | None, most: int = MOST_CHARACTERS) -> Document | None:
    """The document for a page; text that is not JSON is shown unchanged."""
    if stored is None:
        return None
    size = len(stored.encode("utf-8", "surrogatepass"))
    text = stored if size > 10 * most else _indented(stored)
    cut = len(text) > most
    lines = text[:most].split("\n")
    if len(lines) > MOST_LINES:
        cut, lines = True, lines[:MOST_LINES]
    return Document("\n".join(lines), size, len(lines), cut)


def as_document(value: Any) -> Document | None:
    """The same for a decoded value."""
    return document(None if value is None else json.dumps(value, ensure_ascii=False, default=str))


def _indented(stored: str) -> str:
    try:
        value = json.loads(stored)
    except (ValueError, RecursionError):
        return stored
    if isinstance(value, dict | list) and value:
        return json.dumps(value, ensure_ascii=False, indent=2)
    return json.dumps(value, ensure_ascii=False)

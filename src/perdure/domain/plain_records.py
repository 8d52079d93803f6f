"""Records as plain Python: what a web framework or `json.dumps` can write as it is."""

from __future__ import annotations

import json
from typing import Any

import msgspec


def plain(value: Any) -> Any:
    """Records as JSON's own types: times as ISO 8601 text, tuples as lists."""
    return msgspec.json.decode(msgspec.json.encode(value))  # to_builtins keeps tuples


def unpacked(text: str | None) -> Any:
    """A stored JSON document as a value; one that is damaged stays the text that it is."""
    if text is None:
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text

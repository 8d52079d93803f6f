"""Records as plain Python, which a web framework or `json.dumps` can write."""

from __future__ import annotations

import json
from typing import Any

import msgspec


def plain(value: Any) -> Any:
    """Records as JSON types: times as ISO 8601 text, tuples as lists."""
    return msgspec.json.decode(msgspec.json.encode(value))  # to_builtins keeps tuples


def unpacked(text: str | None) -> Any:
    """A stored JSON document as a value; a damaged one stays text."""
    if text is None:
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text

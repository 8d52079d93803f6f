"""A function for SQL: whether a stored document meets conditions."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final

import msgspec

from perdure.domain.operate.condition import Condition
from perdure.policy.matching import meets, meets_of_error, meets_of_tags

_decode: Final = msgspec.json.Decoder().decode
_UNREADABLE: Final = (msgspec.DecodeError, ValueError, RecursionError)


def stored_meets(document: str | None, asked: str) -> bool:
    """Whether the JSON text of a column matches the conditions, given as rows of field, path, operator and value."""
    field, conditions = _conditions(asked)
    try:
        value = None if document is None else _decode(document)
    except _UNREADABLE:  # damaged by another program: it matches nothing
        value = None
    if field == "tags":
        return meets_of_tags([str(tag) for tag in value or ()], conditions)
    if field == "error":
        error_type, message = value or (None, None)
        return meets_of_error(error_type, message, conditions)
    return meets(value, conditions)


@lru_cache(maxsize=64)
def _conditions(asked: str) -> tuple[str, tuple[Condition, ...]]:
    rows: list[list[Any]] = _decode(asked)
    return rows[0][0], tuple(Condition(*row) for row in rows)

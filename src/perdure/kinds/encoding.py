"""Values to JSON and back: what msgspec knows (dataclasses, structs, UUID, datetime, Decimal, …) and pydantic models.

JSON only, never pickle: a row in a database must not be able to run code.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec


def _to_plain(value: Any) -> Any:
    """Turn what msgspec does not know into what it does: pydantic models by their own rules."""
    dump = getattr(value, "model_dump", None)
    if callable(dump) and hasattr(type(value), "model_validate"):
        return dump(mode="json")
    raise NotImplementedError(f"values of type {type(value).__qualname__} cannot be stored as JSON")


def from_plain(wanted: type, value: Any) -> Any:
    """Make a value of a type that msgspec does not know from plain JSON data."""
    if wanted is object:
        return value
    validate = getattr(wanted, "model_validate", None)
    if callable(validate):
        return validate(value)
    raise NotImplementedError(f"values of type {wanted.__qualname__} cannot be read from JSON")


ENCODER: Final = msgspec.json.Encoder(enc_hook=_to_plain)


def encode(value: Any) -> str:
    """The JSON text of a value; raises TypeError, ValueError or NotImplementedError if it has none."""
    return ENCODER.encode(value).decode()

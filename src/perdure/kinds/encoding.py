"""Values to JSON and back: what msgspec knows (dataclasses, structs, UUID, datetime, Decimal, …) and pydantic models.

JSON only, never pickle: a row in a database must not be able to run code.

JSON has no NaN and no infinity. msgspec writes null in their place, which would be a loss that nobody notices; so they
are refused. Only a document in which there is a null is looked at more closely.
"""

from __future__ import annotations

import json
from typing import Any, Final

import msgspec

_NULL: Final = b"null"


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
    raise TypeError(f"values of type {wanted.__qualname__} cannot be read from JSON")


_ENCODER: Final = msgspec.json.Encoder(enc_hook=_to_plain)


def encode(value: Any) -> str:
    """The JSON text of a value; raises TypeError, ValueError or NotImplementedError if it has none."""
    return document_of(value).decode()


def document_of(value: Any) -> bytes:
    """The same as bytes."""
    document = _ENCODER.encode(value)
    if _NULL in document:
        _refuse_endless(value)
    return document


def _refuse_endless(value: Any) -> None:
    """Refuse NaN and the infinities, wherever they are in a value."""
    plain = msgspec.to_builtins(value, str_keys=True, enc_hook=_for_a_look)
    try:
        json.dumps(plain, allow_nan=False)
    except ValueError:
        raise ValueError('NaN and infinity have no place in JSON: use None, or a text such as "inf"') from None


def _for_a_look(value: Any) -> Any:
    return None if isinstance(value, msgspec.Raw) else _to_plain(value)

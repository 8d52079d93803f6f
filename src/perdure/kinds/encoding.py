"""Values to JSON and back: msgspec's types (dataclasses, structs, UUID, datetime, Decimal, …) and pydantic models.

JSON only, never pickle: a row in a database must not be able to run code.

JSON has no NaN and no infinity. msgspec would silently write null instead, so they are refused. Only a document that
contains a null is checked more closely.
"""

from __future__ import annotations

import json
from typing import Any, Final

import msgspec

from perdure.policy.secrets.secret import Secret, from_tagged, is_secret_type, tagged

_NULL: Final = b"null"


def _to_plain(value: Any) -> Any:
    """Convert a pydantic model, by its own rules, to a type that msgspec supports."""
    if isinstance(value, Secret):
        return tagged(value)
    dump = getattr(value, "model_dump", None)
    if callable(dump) and hasattr(type(value), "model_validate"):
        return dump(mode="json")
    raise NotImplementedError(f"values of type {type(value).__qualname__} cannot be stored as JSON")


def from_plain(wanted: type, value: Any) -> Any:
    """Make a value of a type that msgspec does not support from plain JSON data."""
    if wanted is object:
        return value
    if is_secret_type(wanted):
        return from_tagged(wanted, value)
    validate = getattr(wanted, "model_validate", None)
    if callable(validate):
        return validate(value)
    raise TypeError(f"values of type {wanted.__qualname__} cannot be read from JSON")


_ENCODER: Final = msgspec.json.Encoder(enc_hook=_to_plain)


def encode(value: Any) -> str:
    """The JSON text of a value; raises TypeError, ValueError or NotImplementedError if it cannot be encoded."""
    return document_of(value).decode()


def document_of(value: Any) -> bytes:
    """The JSON of a value, as bytes."""
    document = _ENCODER.encode(value)
    if _NULL in document:
        _refuse_endless(value)
    return document


def _refuse_endless(value: Any) -> None:
    """Refuse NaN and infinity anywhere in a value."""
    plain = msgspec.to_builtins(value, str_keys=True, enc_hook=_for_a_look)
    try:
        json.dumps(plain, allow_nan=False)
    except ValueError:
        raise ValueError('NaN and infinity cannot be stored as JSON: use None, or a text such as "inf"') from None


def _for_a_look(value: Any) -> Any:
    return None if isinstance(value, msgspec.Raw) else _to_plain(value)

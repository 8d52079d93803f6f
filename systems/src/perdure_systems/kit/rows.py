"""From a row of either engine to a record."""

from __future__ import annotations

import types
from functools import lru_cache
from typing import Any, Final, TypeVar, Union, get_args, get_origin, get_type_hints

import msgspec

R = TypeVar("R", bound=msgspec.Struct)
_JSON_TYPES: Final = (dict, list, tuple, set, frozenset)
_UNIONS: Final = (Union, types.UnionType)


def as_record(row: dict[str, Any], record: type[R]) -> R:
    """The row as a record of this type: text of JSON fields is decoded, SQLite's 0 and 1 become booleans.

    Columns have the names of the fields, also where the record has others in JSON (`rename="camel"`).
    """
    json_fields, encoded = _json_fields(record), _encoded_names(record)
    values = {
        encoded.get(name, name): msgspec.json.decode(value) if name in json_fields and isinstance(value, str) else value
        for name, value in row.items()
    }
    return msgspec.convert(values, record, strict=False)


def as_json(value: Any) -> str:
    """The text of a JSON column."""
    return msgspec.json.encode(value).decode()


@lru_cache(maxsize=100)
def _encoded_names(record: type[msgspec.Struct]) -> dict[str, str]:
    return dict(zip(record.__struct_fields__, record.__struct_encode_fields__, strict=True))


@lru_cache(maxsize=100)
def _json_fields(record: type[msgspec.Struct]) -> frozenset[str]:
    return frozenset(name for name, hint in get_type_hints(record).items() if _is_json(hint))


def _is_json(hint: Any) -> bool:
    if get_origin(hint) in _UNIONS:
        return any(_is_json(one) for one in get_args(hint))
    plain = get_origin(hint) or hint
    return isinstance(plain, type) and issubclass(plain, (*_JSON_TYPES, msgspec.Struct))

"""Turns msgspec's errors about a parameter or a member of a body into plain sentences."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import Any, Final, cast

import msgspec
from msgspec import Struct, inspect

from perdure.errors import ArgumentError
from perdure.policy.secrets.redaction import is_secret_name, redact_value
from perdure.policy.secrets.secret import MASK
from perdure.storage.checking import echo

TIME: Final = "a time with its zone, such as 2026-03-01T09:00:00Z"

_AT: Final = re.compile(r"^(?P<what>.*) - at `(?:key in )?\$\.?(?P<field>.*?)`$", re.DOTALL)
_UNKNOWN: Final = re.compile(r"^Object contains unknown field `(?P<name>.*)`$", re.DOTALL)
_MISSING: Final = re.compile(r"^Object missing required field `(?P<name>.*)`$")
_EXPECTED: Final = re.compile(r"^Expected (?P<wanted>.*?)(?:, got .*)?$")
_WORDS: Final = {
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "str": "text",
    "array": "a list",
    "object": "an object",
    "datetime": TIME,
}
_BOUNDS: Final = {"<=": "at most", ">=": "at least", "<": "less than", ">": "more than"}


def is_time(wanted: type[Struct], name: str) -> bool:
    """Whether this parameter is a time."""
    return isinstance(_types(wanted).get(name), inspect.DateTimeType)


def refusal(error: msgspec.ValidationError, wanted: type[Struct], given: Mapping[str, Any]) -> ArgumentError:
    """The error for an error of msgspec, with field and value."""
    text = str(error)
    found = _AT.match(text)
    what, field = (found["what"], found["field"]) if found else (text, "")
    if unknown := _UNKNOWN.match(what):
        return ArgumentError(_joined(field, unknown["name"]), "is not known here: check its name")
    if missing := _MISSING.match(what):
        return ArgumentError(_joined(field, missing["name"]), "is missing")
    name = field.partition("[")[0].partition(".")[0]
    declared = _types(wanted).get(name)
    problem = _of_type(declared)
    if problem is None:
        expected = _EXPECTED.match(what)
        problem = f"must be {_plain(expected['wanted'])}" if expected else f"is wrong: {what}"
    return ArgumentError(field or "body", f"{problem}, got {_shown(name, given.get(name))}")


@cache
def _types(wanted: type[Struct]) -> dict[str, inspect.Type]:
    """The types of its fields; null is left out of a union."""
    struct = cast("inspect.StructType", inspect.type_info(wanted))
    return {field.encode_name: _without_null(field.type) for field in struct.fields}


def _without_null(kind: inspect.Type) -> inspect.Type:
    if isinstance(kind, inspect.UnionType):
        others = [each for each in kind.types if not isinstance(each, inspect.NoneType)]
        if len(others) == 1:
            return others[0]
    return kind


def _of_type(kind: inspect.Type | None) -> str | None:
    """What a value of this type must be; None if only msgspec's own message says it."""
    if isinstance(kind, inspect.VarTupleType | inspect.ListType):
        kind = kind.item_type
        if not isinstance(kind, inspect.EnumType | inspect.LiteralType):
            return None
    if isinstance(kind, inspect.DateTimeType):
        return f"must be {TIME}"
    if isinstance(kind, inspect.IntType | inspect.FloatType) and kind.ge is not None and kind.le is not None:
        name = "a whole number" if isinstance(kind, inspect.IntType) else "a number"
        return f"must be {name} from {kind.ge:,} to {kind.le:,}"
    if isinstance(kind, inspect.EnumType):
        return f"must be one of {', '.join(str(member.value) for member in kind.cls)}"
    if isinstance(kind, inspect.LiteralType):
        return f"must be one of {', '.join(map(str, kind.values))}"
    return None


def _plain(expected: str) -> str:
    """A type as msgspec names it, such as `str | null` or `int` <= 500, in plain words."""
    kinds, _, bound = expected.replace("`", "").partition(" of length ")
    kinds, sign, limit = re.match(r"^(.*?)(?: ([<>]=?) (.*))?$", kinds, re.DOTALL).groups()  # type: ignore[union-attr]
    words = " or ".join(_WORDS.get(kind, kind) for kind in kinds.split(" | ") if kind != "null") or "null"
    if sign:
        return f"{words} of {_BOUNDS[sign]} {limit}"
    if bound:
        sign, _, limit = bound.rpartition(" ")
        unit = "character" if kinds.startswith("str") else "item"
        return f"{words} of {_BOUNDS.get(sign, 'exactly')} {limit} {unit}{'' if limit == '1' else 's'}"
    return words


def _shown(name: str, value: Any) -> str:
    """The value for a message: numbers without quotes, possible secrets masked."""
    if is_secret_name(name):
        return MASK
    return value if isinstance(value, str) and re.fullmatch(r"-?[0-9]{1,30}", value) else echo(redact_value(value))


def _joined(place: str, name: str) -> str:
    return f"{place}.{name}" if place else name

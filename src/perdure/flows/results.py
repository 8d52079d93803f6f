"""The result of a step, to JSON and back by the function's annotation.

A result is decoded at once, even in the attempt that made it: a handler always gets what its later runs will get.
"""

from __future__ import annotations

import functools
import typing
from collections.abc import Callable
from typing import Any, Final
from weakref import WeakKeyDictionary

import msgspec

from perdure.errors import StepError
from perdure.kinds.encoding import encode, from_plain

RESULT_LIMIT_BYTES: Final = 1024 * 1024
_READERS: Final[WeakKeyDictionary[Any, msgspec.json.Decoder[Any]]] = WeakKeyDictionary()


def written(key: str, result: Any) -> str | None:
    """The JSON of a step's result; one that cannot be encoded, or is too large, is refused by name."""
    if result is None:
        return None
    try:
        text = encode(result)
    except (TypeError, ValueError, NotImplementedError, OverflowError, RecursionError) as error:
        raise StepError(
            key,
            f"returned a value that cannot be stored as JSON: {error};"
            " return plain data, or the key of data stored elsewhere",
        ) from error
    if (size := len(text.encode())) > RESULT_LIMIT_BYTES:
        raise StepError(
            key,
            f"returned {size} bytes as JSON, {RESULT_LIMIT_BYTES} are allowed; "
            "store the data elsewhere, return its key",
        )
    return text


def read(key: str, text: str | None, wanted: Callable[..., Any] | type | None) -> Any:
    """A stored result as the function's annotated return type, or as a type; None: plain data."""
    if text is None:
        return None
    try:
        if wanted is None:
            return msgspec.json.decode(text)
        if isinstance(wanted, type):
            return msgspec.json.decode(text, type=wanted, dec_hook=from_plain)
        return reader(key, wanted).decode(text)
    except (msgspec.MsgspecError, ValueError, TypeError, NotImplementedError) as error:
        raise StepError(
            key,
            f"does not fit {_described(wanted)}: {error}; if its type was changed while this job was under way,"
            " give the new step another name, or enqueue the job again",
        ) from error


def reader(key: str, function: Callable[..., Any]) -> msgspec.json.Decoder[Any]:
    """The decoder for results of this function."""
    while isinstance(function, functools.partial):
        function = function.func
    function = getattr(function, "__func__", function)  # of a bound method
    try:
        known = _READERS.get(function)
    except TypeError:  # not hashable
        return _reader(key, function)
    if known is None:
        known = _READERS[function] = _reader(key, function)
    return known


def _reader(key: str, function: Callable[..., Any]) -> msgspec.json.Decoder[Any]:
    annotated = function if hasattr(function, "__annotations__") else type(function).__call__
    try:
        hint = typing.get_type_hints(annotated, include_extras=True).get("return", Any)
    except NameError as error:
        raise StepError(key, f"has a function whose annotations cannot be resolved: {error}") from error
    try:
        return msgspec.json.Decoder(hint, dec_hook=from_plain)
    except TypeError as error:
        raise StepError(key, f"has a function whose result cannot be read back from JSON: {error}") from error


def _described(wanted: Callable[..., Any] | type | None) -> str:
    if isinstance(wanted, type):
        return wanted.__qualname__
    return f"what {getattr(wanted, '__qualname__', 'its function')} is annotated to return"

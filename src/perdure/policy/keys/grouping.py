"""Keys that group jobs: values of their arguments, by name or by a function of the user."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from hashlib import sha256
from typing import Any, Final

import msgspec

from perdure.errors import PayloadError, SettingsError
from perdure.policy.secrets.secret import Secret

KeyFunction = Callable[[Mapping[str, Any]], Any]


def check_parameters(setting: str, key: object, parameters: Iterable[str]) -> None:
    """Refuse names of arguments that are not parameters of the handler."""
    known = tuple(parameters)
    unknown = [name for name in key if name not in known] if isinstance(key, tuple) else []
    if unknown:
        has = ", ".join(known) or "none"
        raise SettingsError(setting, f"names {', '.join(unknown)}, but the handler's parameters are: {has}")


def call_with_arguments(setting: str, function: KeyFunction, arguments: Mapping[str, Any]) -> Any:
    """The result of a user's function of all arguments; if it raises, the error names the setting."""
    try:
        return function(arguments)
    except Exception as broken:
        raise PayloadError(setting, f"raised {type(broken).__name__}: {broken}") from broken


def as_json(setting: str, value: Any) -> bytes:
    """A value as JSON, independent of the order of its fields."""
    try:
        return _ENCODER.encode(value)
    except (TypeError, ValueError, OverflowError, RecursionError) as problem:
        raise PayloadError(setting, f"returns a value that cannot be stored as JSON: {problem}") from problem


def _plain(value: Any) -> Any:
    if isinstance(value, Secret):  # keys are shown
        return f"secret {sha256(as_json('key', value.reveal())).hexdigest()}"
    if hasattr(value, "model_dump"):  # pydantic, without importing it
        return value.model_dump(mode="json")
    raise TypeError(f"objects of type {type(value).__name__} are not supported")


_ENCODER: Final = msgspec.json.Encoder(enc_hook=_plain, order="sorted")

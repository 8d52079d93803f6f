"""Which jobs share a queue fairly: by the values of their arguments."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Final

import msgspec

from perdure.errors import PayloadError, SettingsError

FairBy = str | tuple[str, ...] | Callable[[Mapping[str, Any]], Any]

_KEY_LIMIT: Final = 100


@dataclass(frozen=True, slots=True, init=False)
class FairShare:
    """Jobs whose arguments give the same value of `by` share one place among those that take turns."""

    by: tuple[str, ...] | Callable[[Mapping[str, Any]], Any]

    def __init__(self, by: FairBy) -> None:
        names = (by,) if isinstance(by, str) else by
        if not callable(names) and not (
            isinstance(names, tuple | list) and names and all(isinstance(name, str) for name in names)
        ):
            raise SettingsError("fair", f'must name arguments, such as "tenant", or be a function of them, got {by!r}')
        object.__setattr__(self, "by", names if callable(names) else tuple(names))

    def check(self, parameters: Iterable[str]) -> None:
        """Refuse a `by` that names something which is not a parameter of the handler."""
        known = tuple(parameters)
        unknown = [name for name in self.by if name not in known] if isinstance(self.by, tuple) else []
        if unknown:
            has = ", ".join(known) or "none"
            raise SettingsError("fair", f"names {', '.join(unknown)}, but the handler's parameters are: {has}")

    def key_for(self, arguments: Mapping[str, Any]) -> str | None:
        """The key of a job with these arguments, defaults filled in; None if a function gives None: no share."""
        if callable(self.by):
            value = self.by(arguments)
            if value is None:
                return None
        else:
            missing = [name for name in self.by if name not in arguments]
            if missing:
                raise PayloadError(missing[0], "is missing, and the job takes its fair share by it")
            value = [arguments[name] for name in self.by]
            value = value[0] if len(value) == 1 else value
        try:
            text = (
                value
                if isinstance(value, str)
                else msgspec.json.encode(value, enc_hook=_plain, order="sorted").decode()
            )
        except (TypeError, ValueError, OverflowError) as problem:
            raise PayloadError("fair", f"gives a value that cannot be written as JSON: {problem}") from problem
        return text if len(text) <= _KEY_LIMIT else sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _plain(value: Any) -> Any:
    if hasattr(value, "model_dump"):  # pydantic, without importing it
        return value.model_dump(mode="json")
    raise TypeError(f"objects of type {type(value).__name__} are not supported")

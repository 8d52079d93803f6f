"""Which jobs share a queue fairly: by the values of their arguments."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Final

from perdure.errors import PayloadError, SettingsError
from perdure.policy.keys.grouping import KeyFunction, as_json, call_with_arguments, check_parameters

FairBy = str | tuple[str, ...] | KeyFunction

_KEY_LIMIT_CHARACTERS: Final = 100


@dataclass(frozen=True, slots=True, init=False)
class FairShare:
    """Jobs whose arguments give the same value of `by` share one turn among all values."""

    by: tuple[str, ...] | KeyFunction

    def __init__(self, by: FairBy) -> None:
        names = (by,) if isinstance(by, str) else by
        if not callable(names) and not (
            isinstance(names, tuple | list) and names and all(isinstance(name, str) for name in names)
        ):
            raise SettingsError("fair", f'must name arguments, such as "tenant", or be a function of them, got {by!r}')
        object.__setattr__(self, "by", names if callable(names) else tuple(names))

    def check(self, parameters: Iterable[str]) -> None:
        """Refuse a `by` that names something which is not a parameter of the handler."""
        check_parameters("fair", self.by, parameters)

    def key_for(self, arguments: Mapping[str, Any]) -> str | None:
        """The key of a job with these arguments, defaults filled in; None if a function returns None: no fair share."""
        if callable(self.by):
            value = call_with_arguments("fair", self.by, arguments)
            if value is None:
                return None
        else:
            missing = [name for name in self.by if name not in arguments]
            if missing:
                raise PayloadError(missing[0], "is missing, but the fair key of the job needs it")
            value = [arguments[name] for name in self.by]
            value = value[0] if len(value) == 1 else value
        text = value if isinstance(value, str) else as_json("fair", value).decode()
        is_name = len(text) <= _KEY_LIMIT_CHARACTERS and text.isprintable()  # others may hold what no engine can store
        return text if is_name else sha256(text.encode("utf-8", "surrogatepass")).hexdigest()

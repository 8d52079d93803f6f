"""Settings from the environment, under the names that the systems have always had.

A value that cannot be used raises `SettingsError`, which names the variable, the value and what is allowed. Intervals
are read by `perdure.interval_from_env`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from perdure import SettingsError

Environment = Mapping[str, str]


def text_from_env(variable: str, default: str = "", *, environment: Environment | None = None) -> str:
    """The value of a variable; `default` if it is not set or empty."""
    return _value(variable, environment) or default


def required_from_env(variable: str, *, why: str, environment: Environment | None = None) -> str:
    """The value of a variable that must be set; `why` says what it is needed for."""
    value = _value(variable, environment)
    if not value:
        raise SettingsError(variable, f"is not set: {why}")
    return value


def number_from_env(
    variable: str,
    default: int,
    *,
    at_least: int | None = None,
    at_most: int | None = None,
    environment: Environment | None = None,
) -> int:
    """A whole number within bounds; `default` if the variable is not set or empty."""
    value = _value(variable, environment)
    if not value:
        return default
    allowed = _allowed(at_least, at_most)
    try:
        number = int(value)
    except ValueError:
        raise SettingsError(variable, f"must be a whole number{allowed}, got {value!r}") from None
    if (at_least is not None and number < at_least) or (at_most is not None and number > at_most):
        raise SettingsError(variable, f"must be a whole number{allowed}, got {number}")
    return number


def switch_from_env(variable: str, default: bool, *, environment: Environment | None = None) -> bool:
    """True or false; `default` if the variable is not set or empty."""
    value = _value(variable, environment).lower()
    if not value:
        return default
    if value in {"true", "yes", "on", "1"}:
        return True
    if value in {"false", "no", "off", "0"}:
        return False
    raise SettingsError(variable, f"must be true or false, got {value!r}")


def _value(variable: str, environment: Environment | None) -> str:
    return (os.environ if environment is None else environment).get(variable, "").strip()


def _allowed(at_least: int | None, at_most: int | None) -> str:
    if at_least is not None and at_most is not None:
        return f" from {at_least} to {at_most}"
    if at_least is not None:
        return f" of at least {at_least}"
    return "" if at_most is None else f" of at most {at_most}"

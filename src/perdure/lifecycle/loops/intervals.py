"""Intervals set by users: one that is too short is refused by name."""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import timedelta
from typing import Final

from perdure.domain.duration import Duration, format_duration, parse_duration
from perdure.errors import SettingsError

SHORTEST_INTERVAL: Final = timedelta(seconds=1)


def read_interval(field: str, value: Duration, at_least: timedelta = SHORTEST_INTERVAL) -> timedelta:
    """An interval; one shorter than `at_least` is refused, naming the field."""
    interval = parse_duration(field, value, error=SettingsError)
    if interval < at_least:
        raise SettingsError(field, f"must be at least {format_duration(at_least)}, got {format_duration(interval)}")
    return interval


def read_limit(field: str, value: Duration) -> timedelta:
    """A time limit; 0 is refused, naming the field."""
    limit = parse_duration(field, value, error=SettingsError)
    if not limit:
        raise SettingsError(field, f"must be more than 0s, got {format_duration(limit)}")
    return limit


def interval_from_env(
    variable: str,
    default: Duration,
    *,
    at_least: Duration = SHORTEST_INTERVAL,
    environment: Mapping[str, str] | None = None,
) -> timedelta:
    """The interval in an environment variable, or `default` if the variable is not set or empty.

    The variable accepts the same values as code: ``5m``, ``90s``, or a number of seconds. Anything else, and an
    interval below `at_least`, raises SettingsError with the name of the variable and its value.
    """
    shortest = parse_duration("at_least", at_least, error=SettingsError)
    value = (os.environ if environment is None else environment).get(variable, "").strip()
    if not value:
        return read_interval(f"default of {variable}", default, shortest)
    return read_interval(variable, value, shortest)

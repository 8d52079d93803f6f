"""Intervals that people choose: never below a second, and refused by name."""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import timedelta
from typing import Final

from perdure.domain.duration import Duration, format_duration, parse_duration
from perdure.errors import SettingsError

SHORTEST_INTERVAL: Final = timedelta(seconds=1)


def read_interval(field: str, value: Duration) -> timedelta:
    """How often something comes round; below a second is refused, naming the field."""
    interval = parse_duration(field, value, error=SettingsError)
    if interval < SHORTEST_INTERVAL:
        raise SettingsError(
            field, f"must be at least {format_duration(SHORTEST_INTERVAL)}, got {format_duration(interval)}"
        )
    return interval


def read_limit(field: str, value: Duration) -> timedelta:
    """How long something may take; no time at all is refused, naming the field."""
    limit = parse_duration(field, value, error=SettingsError)
    if not limit:
        raise SettingsError(field, f"must be more than 0s, got {format_duration(limit)}")
    return limit


def interval_from_env(variable: str, default: Duration, environment: Mapping[str, str] = os.environ) -> timedelta:
    """The interval that an environment variable asks for, or the default where it is not set or empty.

    What it may say is what may be written in code: ``5m``, ``90s``, a number of seconds. An error names the variable.
    """
    value = environment.get(variable)
    return read_interval(variable, value or default)

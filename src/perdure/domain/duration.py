"""Durations as people write them: ``"90s"``, ``"1h30m"``, ``timedelta(days=5)``, or a number of seconds."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from datetime import timedelta
from typing import Final

from msgspec import Struct
from msgspec.structs import force_setattr

from perdure.errors import ArgumentError, SettingsError

Duration = timedelta | str | int | float

LONGEST_DURATION: Final = timedelta(days=36_500)
"""The longest duration, so that now plus any duration is a date that every database can hold."""

_NUMBER: Final = r"([0-9]+(?:\.[0-9]+)?)"
_UNITS: Final = {
    "w": timedelta(weeks=1),
    "d": timedelta(days=1),
    "h": timedelta(hours=1),
    "m": timedelta(minutes=1),
    "s": timedelta(seconds=1),
    "ms": timedelta(milliseconds=1),
    "us": timedelta(microseconds=1),
}
_BARE: Final = re.compile(_NUMBER)
_SPAN: Final = re.compile(r"\s*".join(rf"(?:{_NUMBER}\s*{unit})?" for unit in _UNITS))
_EXAMPLES: Final = 'write it as "90s", "10m", "1h30m", "5d" or "250ms", or as a number of seconds'


def parse_duration(field: str, value: Duration, *, error: type[ArgumentError] = ArgumentError) -> timedelta:
    """Parse a duration, units from large to small; refuse anything else, naming `field` and giving an example."""
    try:
        span = _read(value)
    except (ValueError, OverflowError):
        raise error(field, f"is not a duration: {_shown(value)}; {_EXAMPLES}") from None
    if span < timedelta(0):
        raise error(field, f"must not be negative, got {_shown(value)}; {_EXAMPLES}")
    if span > LONGEST_DURATION:
        raise error(field, f"must be at most {LONGEST_DURATION.days}d, got {_shown(value)}; {_EXAMPLES}")
    return span


def read_spans(owner: str, settings: Struct, fields: Iterable[str]) -> None:
    """Convert these fields of a new struct to timedelta, from any form that `parse_duration` accepts."""
    for field in fields:
        span = parse_duration(f"{owner}.{field}", getattr(settings, field), error=SettingsError)
        force_setattr(settings, field, span)


def format_duration(span: timedelta) -> str:
    """Write a duration as `parse_duration` reads it: ``1h30m``, ``250ms``, ``0s``."""
    if span < timedelta(0):
        return "-" + format_duration(-span)
    parts = []
    for unit, length in _UNITS.items():
        if unit == "w":  # days are easier to compare
            continue
        count, span = divmod(span, length)
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts) or "0s"


def _read(value: object) -> timedelta:
    if isinstance(value, timedelta):
        return value
    if isinstance(value, bool):
        raise ValueError  # noqa: TRY004 - one kind of refusal for all that cannot be read
    if isinstance(value, int | float):
        return timedelta(seconds=value)
    text = value.strip() if isinstance(value, str) else ""
    if _BARE.fullmatch(text):
        return timedelta(seconds=_finite(text))
    found = _SPAN.fullmatch(text)
    if not text or not found:
        raise ValueError
    lengths = zip(found.groups(), _UNITS.values(), strict=True)
    return sum((length * _finite(number) for number, length in lengths if number), timedelta(0))


def _finite(digits: str) -> float:
    number = float(digits)
    if math.isinf(number):
        raise OverflowError
    return number


def _shown(value: object, most: int = 40) -> str:
    text = repr(value)
    return text if len(text) <= most else f"{text[:most]}…"

"""Scales with round numbers and few grid lines."""

from __future__ import annotations

import math
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Final

_ROUND_NUMBERS: Final = (1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 9.0, 10.0)
_MINUTES: Final = tuple(timedelta(minutes=m) for m in (1, 2, 5, 10, 15, 30))
_HOURS: Final = tuple(timedelta(hours=h) for h in (1, 2, 3, 6, 12, 24, 48, 168))
_SECONDS: Final = tuple(timedelta(seconds=s) for s in (0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 2, 5, 10, 15, 30))
STEPS: Final = (*_SECONDS, *_MINUTES, *_HOURS)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def ceiling(values: Iterable[float | None], least: float) -> float:
    """The smallest suitable round number that no value exceeds, at least `least`."""
    largest = max((value for value in values if value is not None and math.isfinite(value)), default=0.0)
    largest = max(largest, least)
    power = 10.0 ** math.floor(math.log10(largest))
    return next((one * power for one in _ROUND_NUMBERS if one * power >= largest * 0.9999), 10 * power)


def parts(top: float) -> int:
    """The number of equal parts of a scale up to `top`, so that its grid lines are at round numbers."""
    leading = round(top / 10.0 ** math.floor(math.log10(top)), 6)
    return 3 if leading in {1.5, 3.0, 6.0, 9.0} else 2


def round_times(start: datetime, end: datetime, most: int) -> list[datetime]:
    """Round instants between two others, at most `most` of them."""
    span = end - start
    step = next((one for one in STEPS if span / one <= most), timedelta(days=math.ceil(span.days / most) or 1))
    first = start + (-(start - _EPOCH)) % step
    found: list[datetime] = []
    while first <= end and len(found) < most + 1:
        found.append(first)
        first += step
    return found

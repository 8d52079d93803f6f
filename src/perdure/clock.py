"""Where time comes from.

The database's clock decides what is due or leased; engines on the same machine (SQLite) and pure decisions take theirs
from here. Tests hand in a `ManualClock` and move it.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from typing import Protocol


class Clock(Protocol):
    """Wall time for dates, monotonic time for measuring."""

    def now(self) -> datetime:
        """The time of day, in UTC."""

    def monotonic(self) -> float:
        """Seconds that only go forward."""


class SystemClock:
    """The machine's own clocks."""

    def now(self) -> datetime:
        """The time of day, in UTC."""
        return datetime.now(UTC)  # noqa: TID251 - the one place that may ask

    def micros(self) -> int:
        """The same as microseconds since 1970, without the detour over a date."""
        return time.time_ns() // 1_000

    def monotonic(self) -> float:
        """Seconds that only go forward."""
        return time.monotonic()


class ManualClock:
    """A clock that stands still until it is moved: for tests. Engines ask it in place of the database's clock."""

    def __init__(self, start: datetime | None = None) -> None:
        self._now = start or datetime(2026, 1, 1, tzinfo=UTC)
        self._monotonic = 0.0

    def now(self) -> datetime:
        """The time it was last moved to."""
        return self._now

    def monotonic(self) -> float:
        """Seconds moved forward so far."""
        return self._monotonic

    def move(self, by: timedelta) -> datetime:
        """Go forward (or, for a clock that jumps, backward) and return the new time."""
        self._now += by
        self._monotonic += max(by.total_seconds(), 0.0)
        return self._now

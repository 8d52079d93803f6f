"""Time sources.

The database's clock decides what is due and which leases are live. Engines on the same machine (SQLite) and pure
decisions use a `Clock`. Tests pass a `ManualClock` and move it.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from typing import Protocol


class Clock(Protocol):
    """Wall time for dates, monotonic time for measuring."""

    def now(self) -> datetime:
        """The current time, in UTC."""

    def monotonic(self) -> float:
        """Monotonic seconds."""


class SystemClock:
    """The machine's clocks."""

    def now(self) -> datetime:
        """The current time, in UTC."""
        return datetime.now(UTC)  # noqa: TID251 - the one place that may ask

    def micros(self) -> int:
        """The current time in microseconds since 1970, without building a datetime."""
        return time.time_ns() // 1_000

    monotonic = staticmethod(time.monotonic)  # the function itself: every attempt asks for it twice
    """Monotonic seconds."""


class ManualClock:
    """A clock for tests: it moves only when a test moves it. Engines use it instead of the database's clock."""

    def __init__(self, start: datetime | None = None) -> None:
        self._now = start or datetime(2026, 1, 1, tzinfo=UTC)
        self._monotonic = 0.0

    def now(self) -> datetime:
        """The time it was last set to."""
        return self._now

    def monotonic(self) -> float:
        """Seconds moved forward so far."""
        return self._monotonic

    def move(self, by: timedelta) -> datetime:
        """Move forward (or backward, to test clock jumps) and return the new time."""
        self._now += by
        self._monotonic += max(by.total_seconds(), 0.0)
        return self._now

"""Notices clock jumps, by comparing a clock with the monotonic one."""

from __future__ import annotations

from datetime import datetime, timedelta


class Steadiness:
    """Compares the database's clock with this machine's monotonic one, from one look to the next."""

    def __init__(self, tolerance: timedelta) -> None:
        self._tolerance = tolerance
        self._last: tuple[datetime, float] | None = None

    def jump(self, now: datetime, monotonic: float) -> timedelta | None:
        """By how much the clock has jumped since the last look, forward or backward; None: it has not."""
        last, self._last = self._last, (now, monotonic)
        if last is None:
            return None
        jump = (now - last[0]) - timedelta(seconds=monotonic - last[1])
        return jump if abs(jump) > self._tolerance else None

"""Randomness in waits, so that jobs that failed together do not come back together."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Protocol

from perdure.domain.duration import Duration, parse_duration
from perdure.errors import SettingsError


class Randomness(Protocol):
    """A source of randomness: a `random.Random`, or a compatible one."""

    def uniform(self, a: float, b: float, /) -> float:
        """A uniform random number between a and b."""


@dataclass(frozen=True, slots=True)
class Jitter:
    """A wait becomes a uniform draw from ``wait * low`` to ``wait * high + extra``.

    Made by `none`, `plus`, `ratio` and `full`.
    """

    low: float = 1
    high: float = 1
    extra: timedelta = timedelta(0)

    @classmethod
    def none(cls) -> Jitter:
        """Leave every wait unchanged."""
        return cls()

    @classmethod
    def plus(cls, most: Duration) -> Jitter:
        """Add between 0 and `most`."""
        return cls(extra=parse_duration("jitter.plus", most, error=SettingsError))

    @classmethod
    def ratio(cls, share: float) -> Jitter:
        """Shorten or lengthen by up to this share: 0.2 means ±20 %."""
        if isinstance(share, bool) or not isinstance(share, int | float) or not 0 <= share <= 1:
            raise SettingsError("jitter.ratio", f"must be between 0 and 1 (0.2 means ±20 %), got {share!r}")
        return cls(1 - share, 1 + share)

    @classmethod
    def full(cls) -> Jitter:
        """Draw between 0 and the wait."""
        return cls(low=0)

    def bounds(self, wait: timedelta) -> tuple[timedelta, timedelta]:
        """The shortest and the longest that this wait can become."""
        return wait * self.low, wait * self.high + self.extra

    def apply(self, wait: timedelta, random: Randomness) -> timedelta:
        """Draw the jittered wait."""
        low, high = self.bounds(wait)
        if low == high:
            return low
        drawn = timedelta(seconds=random.uniform(low.total_seconds(), high.total_seconds()))
        return min(max(drawn, low), high)

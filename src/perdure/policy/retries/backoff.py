"""How long to wait after a failure, before jitter and deadlines apply."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import timedelta

from perdure.domain.duration import LONGEST_DURATION, Duration, parse_duration
from perdure.errors import SettingsError


@dataclass(frozen=True, slots=True)
class Backoff:
    """A row of waits; the last one repeats, growing by `factor` each time up to `cap`.

    Made by `exponential`, `table`, `fixed` and `none`.
    """

    waits: tuple[timedelta, ...]
    factor: float = 1
    cap: timedelta | None = None

    def __post_init__(self) -> None:
        if not self.waits:
            raise SettingsError("backoff.waits", 'must name at least one wait, such as Backoff.table("5s", "15s")')
        if not (math.isfinite(self.factor) and self.factor >= 1):
            raise SettingsError("backoff.factor", f"must be a number of 1 or more, got {self.factor!r}")
        if self.cap is not None and self.cap < self.waits[0]:
            raise SettingsError("backoff.cap", f"must not be less than the first wait, got {self.cap}")

    @classmethod
    def exponential(cls, base: Duration, factor: float = 2, cap: Duration | None = None) -> Backoff:
        """Wait `base`, then `factor` times as long after every further failure, at most `cap`."""
        most = None if cap is None else parse_duration("backoff.cap", cap, error=SettingsError)
        return cls((parse_duration("backoff.base", base, error=SettingsError),), factor, most)

    @classmethod
    def table(cls, *waits: Duration) -> Backoff:
        """Wait as listed; the last wait applies to all further failures."""
        return cls(tuple(parse_duration("backoff.waits", wait, error=SettingsError) for wait in waits))

    @classmethod
    def fixed(cls, wait: Duration) -> Backoff:
        """Wait the same after every failure."""
        return cls((parse_duration("backoff.wait", wait, error=SettingsError),))

    @classmethod
    def none(cls) -> Backoff:
        """Do not wait at all."""
        return cls((timedelta(0),))

    def wait(self, failures_before: int) -> timedelta:
        """The wait after a failure that had so many before it; defined, and bounded, for any number."""
        last = len(self.waits) - 1
        start = self.waits[min(failures_before, last)]
        ceiling = LONGEST_DURATION if self.cap is None else self.cap
        exponent = failures_before - last
        if exponent <= 0 or self.factor == 1 or not start:
            return min(start, ceiling)
        # Beyond this exponent the cap applies anyway; so the power never overflows.
        if exponent >= math.log(ceiling / start) / math.log(self.factor):
            return ceiling
        return min(start * self.factor**exponent, ceiling)

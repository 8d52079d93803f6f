"""How background work behaves while the database fails (C4).

The first few errors in a row are met with a short wait; after that the wait doubles from one second to the longest
backoff. A success resets everything.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from msgspec import Struct

_SHORT: Final = timedelta(milliseconds=200)
_FIRST: Final = timedelta(seconds=1)


class OutageLimits(Struct, frozen=True):
    """The backoff begins with error number `errors` in a row, and no wait is longer than `backoff`."""

    errors: int = 5
    backoff: timedelta = timedelta(seconds=30)


DEFAULT_OUTAGE: Final = OutageLimits()


class Patience:
    """Counts errors in a row and says how long to wait before the next try."""

    def __init__(self, limits: OutageLimits = DEFAULT_OUTAGE) -> None:
        self.limits = limits
        self.failures = 0

    def failed(self) -> timedelta:
        """Count one more error in a row; the wait before the next try."""
        self.failures += 1
        beyond = self.failures - self.limits.errors
        if beyond < 0:
            return min(_SHORT, self.limits.backoff)
        factor: int = 2 ** min(beyond, 30)
        return min(_FIRST * factor, self.limits.backoff)

    def succeeded(self) -> int:
        """Forget the errors; how many there were."""
        failures, self.failures = self.failures, 0
        return failures

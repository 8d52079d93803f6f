"""How background work retries while the database fails (C4).

After the first few consecutive errors the wait is short; then it doubles from one second to the longest backoff. A
success resets everything.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from msgspec import Struct

_WAIT_BEFORE_BACKOFF: Final = timedelta(milliseconds=200)
_FIRST_BACKOFF: Final = timedelta(seconds=1)


class OutageLimits(Struct, frozen=True):
    """The backoff begins with consecutive error number `errors`, and no wait is longer than `backoff`."""

    errors: int = 5
    backoff: timedelta = timedelta(seconds=30)


DEFAULT_OUTAGE: Final = OutageLimits()


class OutageBackoff:
    """Counts consecutive errors and gives the wait before the next try."""

    def __init__(self, limits: OutageLimits = DEFAULT_OUTAGE) -> None:
        self.limits = limits
        self.failures = 0

    def failed(self) -> timedelta:
        """Count one more error; returns the wait before the next try."""
        self.failures += 1
        beyond = self.failures - self.limits.errors
        if beyond < 0:
            return min(_WAIT_BEFORE_BACKOFF, self.limits.backoff)
        factor: int = 2 ** min(beyond, 30)
        return min(_FIRST_BACKOFF * factor, self.limits.backoff)

    def succeeded(self) -> int:
        """Forget the errors; returns how many there were."""
        failures, self.failures = self.failures, 0
        return failures

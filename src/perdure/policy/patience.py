"""How a background task behaves while the database fails (C4).

The first few errors in a row are met with a short wait; after that the wait doubles from one second to half a minute.
A success resets everything.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final

_SHORT: Final = timedelta(milliseconds=200)
_FIRST: Final = timedelta(seconds=1)


class Patience:
    """Counts errors in a row and says how long to wait before the next try."""

    def __init__(self, tolerated: int = 5, longest: timedelta = timedelta(seconds=30)) -> None:
        self._tolerated = tolerated
        self._longest = longest
        self.failures = 0

    def failed(self) -> timedelta:
        """Count one more error in a row; the wait before the next try."""
        self.failures += 1
        beyond = self.failures - self._tolerated
        if beyond < 0:
            return _SHORT
        factor: int = 2 ** min(beyond, 30)
        return min(_FIRST * factor, self._longest)

    def succeeded(self) -> int:
        """Forget the errors; how many there were."""
        failures, self.failures = self.failures, 0
        return failures

"""The bounds of a search that looks at jobs one by one."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from perdure.storage.records import Reach

FIRST_STEP_ROWS: Final = 500
_SHORTEST_STEP_ROWS: Final = 100  # fewer are not worth another query
_LONGEST_STEP_ROWS: Final = 2_000


class Bounds:
    """Counts what a search has looked at, and for how long; `step` is how far it looks next.

    A step grows while it fits into the time that is left, at the speed of the steps before it.
    """

    def __init__(self, reach: Reach, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._rows = reach.rows
        self._looked = 0
        self._began = monotonic()
        self._until = self._began + reach.time.total_seconds()
        self.step = min(FIRST_STEP_ROWS, reach.rows)

    def are_reached(self, rows: int | None = None) -> bool:
        """Whether to end, after so many rows, or a whole step."""
        looked = self.step if rows is None else rows
        self._rows -= looked
        self._looked += looked
        now = self._monotonic()
        fitting = self._looked * (self._until - now) / max(now - self._began, 1e-9)
        self.step = max(1, min(2 * self.step, _LONGEST_STEP_ROWS, self._rows, int(fitting)))
        return self._rows <= 0 or fitting < _SHORTEST_STEP_ROWS

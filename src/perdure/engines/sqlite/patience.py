"""Waiting for a lock that another process holds.

SQLite's own waiting doubles up to 100 ms, so that of two busy processes one starves. Here everybody looks again after
a short random while, which is fair, and gives up after half a minute.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import Final, TypeVar

from perdure.engines.sqlite.failures import StoreBusy
from perdure.errors import StoreUnavailable

T = TypeVar("T")

LIMIT: Final = 30.0
_SHORTEST: Final = 0.0002
_LONGEST: Final = 0.002


def patiently(act: Callable[[], T], limit: float = LIMIT) -> T:
    """Do `act` until it is not refused because somebody else has the lock."""
    deadline = None
    while True:
        try:
            return act()
        except StoreBusy as busy:
            now = time.monotonic()
            deadline = deadline or now + limit
            if now >= deadline:
                raise StoreUnavailable(
                    f"{busy}: waited {limit:g} s; look for a process that is stopped, or holds a long transaction"
                ) from busy
            time.sleep(random.uniform(_SHORTEST, _LONGEST))  # noqa: S311 - spreads load, guards nothing

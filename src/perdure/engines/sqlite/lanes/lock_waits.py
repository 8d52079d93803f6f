"""Waiting for a lock that another process holds.

SQLite's own waiting doubles up to 100 ms, so that of two busy processes one starves. Here every process retries after a
short random wait, which is fair, and gives up after half a minute.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable
from typing import Final, TypeVar

from perdure.engines.sqlite.database.faults import StoreBusy
from perdure.errors import StoreLocked

T = TypeVar("T")

LOCK_WAIT_LIMIT_SECONDS: Final = 30.0
_SHORTEST_WAIT_SECONDS: Final = 0.0002
_LONGEST_WAIT_SECONDS: Final = 0.002


def retry_while_locked(act: Callable[[], T]) -> T:
    """Run `act` until it is not refused because another process has the lock."""
    waits = LockWaits()
    while True:
        try:
            return act()
        except StoreBusy as busy:
            time.sleep(waits.after(busy))


async def retry_while_locked_async(act: Callable[[], T]) -> T:
    """The same, without holding up the event loop."""
    waits = LockWaits()
    while True:
        try:
            return act()
        except StoreBusy as busy:
            await asyncio.sleep(waits.after(busy))


class LockWaits:
    """How long to wait each time, until the limit is reached."""

    def __init__(self) -> None:
        self._deadline: float | None = None

    def after(self, busy: StoreBusy) -> float:
        """The wait after one more refusal; raises once there were enough of them."""
        now = time.monotonic()
        self._deadline = self._deadline or now + LOCK_WAIT_LIMIT_SECONDS
        if now >= self._deadline:
            raise given_up(busy) from busy
        return random_wait()


def given_up(busy: StoreBusy) -> StoreLocked:
    """The error for a lock that was waited for long enough."""
    return StoreLocked(
        f"{busy}: waited {LOCK_WAIT_LIMIT_SECONDS:g} s; look for a process that is stopped, or holds a long transaction"
    )


def random_wait() -> float:
    """Seconds until the next look."""
    return random.uniform(_SHORTEST_WAIT_SECONDS, _LONGEST_WAIT_SECONDS)  # noqa: S311 - spreads load, guards nothing

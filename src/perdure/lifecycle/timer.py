"""Measuring and waiting; tests of loops replace it to control time."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable
from typing import Final, Protocol


class Alarm(Protocol):
    """A scheduled call."""

    def cancel(self) -> None:
        """Cancel it."""


class Timer(Protocol):
    """Where loops read the time, and schedule calls."""

    def monotonic(self) -> float:
        """Monotonic seconds."""

    def call_later(self, seconds: float, callback: Callable[[], object]) -> Alarm:
        """Call back on the running event loop after this time."""


class RealTimer:
    """The machine's monotonic clock, and the running event loop's timers."""

    def monotonic(self) -> float:
        """Monotonic seconds."""
        return time.monotonic()

    def call_later(self, seconds: float, callback: Callable[[], object]) -> Alarm:
        """Call back on the running event loop after this time."""
        return asyncio.get_running_loop().call_later(seconds, callback)


REAL_TIMER: Final = RealTimer()


async def pause(timer: Timer, stir: asyncio.Event, seconds: float) -> None:
    """Wait until the event is set, or this time has passed, which sets it too."""
    alarm = None if math.isinf(seconds) else timer.call_later(max(seconds, 0.0), stir.set)
    try:
        await stir.wait()
    finally:
        if alarm is not None:
            alarm.cancel()

"""Measuring and waiting, so that tests of loops hold time in their hands."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable
from typing import Final, Protocol


class Alarm(Protocol):
    """A call that is to come."""

    def cancel(self) -> None:
        """Let it never come."""


class Timer(Protocol):
    """Where loops ask how late it is, and to be called later."""

    def monotonic(self) -> float:
        """Seconds that only go forward."""

    def call_later(self, seconds: float, callback: Callable[[], object]) -> Alarm:
        """Call back on the running event loop after so much time."""


class RealTimer:
    """The machine's monotonic clock, and the running event loop's alarms."""

    def monotonic(self) -> float:
        """Seconds that only go forward."""
        return time.monotonic()

    def call_later(self, seconds: float, callback: Callable[[], object]) -> Alarm:
        """Call back on the running event loop after so much time."""
        return asyncio.get_running_loop().call_later(seconds, callback)


REAL_TIMER: Final = RealTimer()


async def pause(timer: Timer, stir: asyncio.Event, seconds: float) -> None:
    """Wait until somebody stirs, or so much time has passed, which is a stir as well."""
    alarm = None if math.isinf(seconds) else timer.call_later(max(seconds, 0.0), stir.set)
    try:
        await stir.wait()
    finally:
        if alarm is not None:
            alarm.cancel()

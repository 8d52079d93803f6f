"""Time for loops that only the test moves."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

_TURNS = 25


class ManualAlarm:
    """A call that is to come when the test says so."""

    def __init__(self, at: float, callback: Callable[[], object]) -> None:
        self.at = at
        self.callback = callback
        self.is_cancelled = False

    def cancel(self) -> None:
        self.is_cancelled = True


class ManualTimer:
    """Stands still until it is moved, and then stops at every alarm on the way."""

    def __init__(self) -> None:
        self.now = 0.0
        self._alarms: list[ManualAlarm] = []

    def monotonic(self) -> float:
        return self.now

    def call_later(self, seconds: float, callback: Callable[[], object]) -> ManualAlarm:
        alarm = ManualAlarm(self.now + seconds, callback)
        self._alarms.append(alarm)
        return alarm

    async def move(self, seconds: float) -> None:
        """Go forward, from alarm to alarm."""
        until = self.now + seconds
        await settle()
        while due := [alarm for alarm in self._alarms if not alarm.is_cancelled and alarm.at <= until]:
            first = min(due, key=lambda alarm: alarm.at)
            self._alarms.remove(first)
            self.now = max(self.now, first.at)
            first.callback()
            await settle()
        self.now = until

    def jump(self, seconds: float) -> None:
        """Go forward all at once: the process was stopped meanwhile."""
        self.now += seconds


async def settle() -> None:
    """Let every task go on until all of them wait."""
    for _ in range(_TURNS):
        await asyncio.sleep(0)

"""Tells of gates that come near their limit (E8), not more than once a minute of each and its window."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from typing import Final

from perdure.clock import Clock
from perdure.domain.duration import format_duration
from perdure.domain.gate import NearLimit
from perdure.events import Emitter, GateNearlyFull

_QUIET_FOR: Final = 60.0
_DIGITS: Final = 6  # eight times 0.1 is told as 0.8
_MOST: Final = 10_000  # keys that are remembered: arguments make them, and there may be any number


class NearLimits:
    """Throttles the warnings of one worker."""

    def __init__(self, emitter: Emitter, clock: Clock) -> None:
        self._emitter = emitter
        self._clock = clock
        self._told: dict[tuple[str, timedelta], float] = {}

    def tell(self, warnings: Iterable[NearLimit]) -> None:
        """Pass on what was not said a moment ago."""
        for warning in warnings:
            window = warning.gate, warning.per
            now, last = self._clock.monotonic(), self._told.get(window)
            if last is not None and now - last < _QUIET_FOR:
                continue
            if len(self._told) >= _MOST:
                self._told.clear()
            self._told[window] = now
            used, per = round(warning.used, _DIGITS), format_duration(warning.per)
            self._emitter.emit(GateNearlyFull(warning.gate, used, warning.limit, per))

"""Reports gates that are near their limit (E8), at most once a minute for each gate and window."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from typing import Final

from perdure.clock import Clock
from perdure.domain.duration import format_duration
from perdure.domain.gate import NearLimit
from perdure.events import Emitter, GateNearlyFull

_REPEAT_AFTER_SECONDS: Final = 60.0
_DECIMALS_TOLD: Final = 6  # eight times 0.1 is reported as 0.8
_GATES_REMEMBERED: Final = 10_000  # keys that are remembered: arguments make them, and there may be any number


class NearLimits:
    """Throttles the warnings of one worker."""

    def __init__(self, emitter: Emitter, clock: Clock) -> None:
        self._emitter = emitter
        self._clock = clock
        self._reported_at: dict[tuple[str, timedelta], float] = {}

    def warn(self, warnings: Iterable[NearLimit]) -> None:
        """Emit the warnings that were not emitted a moment ago."""
        for warning in warnings:
            window = warning.gate, warning.per
            now, last = self._clock.monotonic(), self._reported_at.get(window)
            if last is not None and now - last < _REPEAT_AFTER_SECONDS:
                continue
            if len(self._reported_at) >= _GATES_REMEMBERED:
                self._reported_at.clear()
            self._reported_at[window] = now
            used, per = round(warning.used, _DECIMALS_TOLD), format_duration(warning.per)
            self._emitter.emit(GateNearlyFull(warning.gate, used, warning.limit, per))

"""Records refused calls of agents: always in the log, and in the audit trail up to a limit."""

from __future__ import annotations

import logging
from collections import deque
from contextlib import suppress
from typing import Final

from perdure.clock import Clock, SystemClock
from perdure.errors import StoreError
from perdure.operate.desk import Desk

ACTION: Final = "agent_refused"
_ENTRIES_PER_WINDOW: Final = 10  # entries within the window, so that a caller who may only read cannot fill the trail
_WINDOW_SECONDS: Final = 60.0
_log = logging.getLogger("perdure.mcp")


class Refusals:
    """Records what was refused, and why."""

    def __init__(self, clock: Clock | None = None) -> None:
        self._clock = clock or SystemClock()
        self._lately: deque[float] = deque(maxlen=_ENTRIES_PER_WINDOW)

    async def record(self, desk: Desk, tool: str, reason: str) -> None:
        """Record one refusal; a read-only database gets no entry."""
        _log.warning("%s refused to %s: %s", tool, desk.actor, reason)
        now = self._clock.monotonic()
        if len(self._lately) == _ENTRIES_PER_WINDOW and now - self._lately[0] < _WINDOW_SECONDS:
            return
        self._lately.append(now)
        with suppress(StoreError):
            await desk.record(ACTION, details={"tool": tool, "reason": reason})

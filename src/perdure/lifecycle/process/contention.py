"""Remembers what has blocked the event loop, calls to the database that took too long, and loops that overran."""

from __future__ import annotations

from collections import deque
from datetime import datetime
from typing import Final

from msgspec import Struct

from perdure.clock import Clock, SystemClock
from perdure.events import Emitter, Event, EventLoopBlocked, HeartbeatStuck, LoopOverran, LoopSkipped, StoreSlow

_INCIDENTS_KEPT: Final = 50
_TOLD: Final = (EventLoopBlocked, StoreSlow, HeartbeatStuck, LoopOverran, LoopSkipped)


class Incident(Struct, frozen=True, kw_only=True):
    """Something that took too long: what, for how many seconds, and the stack that shows where."""

    at: datetime
    event: str
    what: str
    seconds: float | None
    stack: str | None


class Incidents(Struct, frozen=True, kw_only=True):
    """The newest incidents first, and how many there were since the process began to watch."""

    since: datetime
    total: int
    incidents: tuple[Incident, ...]


class IncidentLog:
    """Keeps the newest incidents that an emitter reports, from any thread."""

    def __init__(self, emitter: Emitter, clock: Clock | None = None) -> None:
        self._clock = clock or SystemClock()
        self._since = self._clock.now()
        self._kept: deque[Incident] = deque(maxlen=_INCIDENTS_KEPT)
        self._total = 0
        self.stop = emitter.subscribe(self._hear, *_TOLD)

    def report(self) -> Incidents:
        """The incidents kept."""
        return Incidents(since=self._since, total=self._total, incidents=tuple(reversed(self._kept)))

    def _hear(self, event: Event) -> None:
        self._total += 1
        self._kept.append(
            Incident(
                at=self._clock.now(),
                event=type(event).__name__,
                what=str(getattr(event, "what", None) or getattr(event, "loop", None) or event.sentence),
                seconds=getattr(event, "seconds", None),
                stack=getattr(event, "stack", None),
            )
        )

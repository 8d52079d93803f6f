"""Events of gates: breakers, pauses, limits almost reached."""

from __future__ import annotations

from typing import ClassVar

from perdure.events.base import Event


class BreakerOpened(Event, frozen=True):
    """A circuit breaker opened: too many jobs failed, a trial failed, or an operator opened it.

    If an operator opened it, each worker that meets the breaker emits this event.
    """

    sentence: ClassVar[str] = "breaker open"
    level: ClassVar[str] = "warning"
    breaker: str
    until: str | None
    because: str


class BreakerHalfOpen(Event, frozen=True):
    """A breaker lets a few trial jobs through."""

    sentence: ClassVar[str] = "breaker half open"
    breaker: str


class BreakerClosed(Event, frozen=True):
    """A breaker closed: its jobs run again, slowly at first."""

    sentence: ClassVar[str] = "breaker closed"
    breaker: str
    because: str


class JobsPaused(Event, frozen=True):
    """A worker learned that an operator paused jobs: of a queue, of a kind, or with certain arguments."""

    sentence: ClassVar[str] = "jobs paused by an operator"
    level: ClassVar[str] = "warning"
    pause: str
    queue: str | None
    kind: str | None
    args: str | None
    until: str | None
    by: str
    because: str


class JobsResumed(Event, frozen=True):
    """A worker learned that a pause is over."""

    sentence: ClassVar[str] = "pause over"
    pause: str
    queue: str | None
    kind: str | None


class GateNearlyFull(Event, frozen=True):
    """A rate or a budget has used four fifths of its window; emitted at most once a minute for each."""

    sentence: ClassVar[str] = "gate nearly full"
    level: ClassVar[str] = "warning"
    gate: str
    used: float
    limit: float
    per: str

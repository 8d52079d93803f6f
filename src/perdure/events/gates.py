"""What happens at gates: breakers, pauses, limits that come near."""

from __future__ import annotations

from typing import ClassVar

from perdure.events.base import Event


class BreakerOpened(Event, frozen=True):
    """An outside system is left alone: too many jobs have failed at it, or a trial has; or somebody wants it so.

    What was done by hand each worker tells that meets the breaker.
    """

    sentence: ClassVar[str] = "breaker open"
    level: ClassVar[str] = "warning"
    breaker: str
    until: str | None
    because: str


class BreakerHalfOpen(Event, frozen=True):
    """A few jobs try whether an outside system is back."""

    sentence: ClassVar[str] = "breaker half open"
    breaker: str


class BreakerClosed(Event, frozen=True):
    """An outside system is called again, slowly at first."""

    sentence: ClassVar[str] = "breaker closed"
    breaker: str
    because: str


class JobsPaused(Event, frozen=True):
    """A worker has heard that an operator holds jobs back: of a queue, of a kind, or with certain arguments."""

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
    """A worker has heard that a pause is over."""

    sentence: ClassVar[str] = "pause over"
    pause: str
    queue: str | None
    kind: str | None


class GateNearlyFull(Event, frozen=True):
    """A rate or a budget has used four fifths of a window; emitted at most once a minute for each of them."""

    sentence: ClassVar[str] = "gate nearly full"
    level: ClassVar[str] = "warning"
    gate: str
    used: float
    limit: float
    per: str

"""Hands events to their listeners."""

from __future__ import annotations

import logging
from collections.abc import Callable

from perdure.errors import ArgumentError
from perdure.events.base import Event
from perdure.events.jobs import PER_ATTEMPT

_log = logging.getLogger("perdure")


Listener = Callable[[Event], None]


class Emitter:
    """Hands each event to every listener; a listener that fails never harms the work."""

    def __init__(self) -> None:
        self._listeners: list[tuple[Listener, tuple[type[Event], ...]]] = []
        self.follows_attempts = False
        """Whether there is a subscriber to the events of every attempt."""

    def subscribe(self, listener: Listener, *types: type[Event]) -> Callable[[], None]:
        """Add a listener and return the way to remove it.

        With `types` it hears only these; without, it hears all but the events of every attempt.
        """
        for wanted in types:
            if not (isinstance(wanted, type) and issubclass(wanted, Event)):
                raise ArgumentError("types", f"must be classes of events such as JobFailed, got {wanted!r}")
        entry = listener, types
        self._listeners.append(entry)
        self._look_round()

        def unsubscribe() -> None:
            self._listeners.remove(entry)
            self._look_round()

        return unsubscribe

    def emit(self, event: Event) -> None:
        """Tell every listener that wants to hear of it."""
        for listener, types in tuple(self._listeners):
            if not (isinstance(event, types) if types else not isinstance(event, PER_ATTEMPT)):
                continue
            try:
                listener(event)
            except Exception:  # noqa: BLE001 - a listener is somebody else's code
                _log.exception("listener %r failed on %s", listener, type(event).__name__)

    def _look_round(self) -> None:
        wanted = {one for _, types in self._listeners for one in types}
        self.follows_attempts = any(issubclass(one, wanted_one) for one in PER_ATTEMPT for wanted_one in wanted)

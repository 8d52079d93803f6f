"""Passes events to their listeners."""

from __future__ import annotations

import logging
from collections.abc import Callable

from perdure.errors import ArgumentError
from perdure.events.base import Event
from perdure.events.jobs import PER_ATTEMPT

_log = logging.getLogger("perdure")


Listener = Callable[[Event], None]


class Emitter:
    """Passes each event to every listener; a listener that raises never affects the work."""

    def __init__(self) -> None:
        self._listeners: list[tuple[Listener, tuple[type[Event], ...]]] = []
        self.follows_attempts = False
        """Whether an event of single attempts has a subscriber."""

    def subscribe(self, listener: Listener, *types: type[Event]) -> Callable[[], None]:
        """Add a listener; returns a function that removes it.

        With `types` it gets only these; without, it gets all events except those of single attempts.
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
        """Pass an event to every listener that subscribed to it."""
        for listener, types in tuple(self._listeners):
            if not (isinstance(event, types) if types else not isinstance(event, PER_ATTEMPT)):
                continue
            try:
                listener(event)
            except Exception:  # noqa: BLE001 - a listener is the user's code
                _log.exception("listener %r failed on %s", listener, type(event).__name__)

    def _look_round(self) -> None:
        wanted = {one for _, types in self._listeners for one in types}
        self.follows_attempts = any(issubclass(one, wanted_one) for one in PER_ATTEMPT for wanted_one in wanted)

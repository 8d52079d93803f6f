"""How far a pruner has walked past finished jobs that their kind keeps longer than the default.

The pruner goes along the index of a state and queue, oldest first. Jobs of kinds with their own retention stay where
they are, so a second walk would read them all again. This remembers where the last walk ended. Every hour the walk
starts again from the beginning: a clock that was set back, or a kind that has dropped its own retention, may have left
expired jobs there.
"""

from __future__ import annotations

import time
from typing import Any, Final

_START_OVER_SECONDS: Final = 3_600.0  # seconds

Place = tuple[Any, str]
"""When a job ended, and its id."""


class PruneProgress:
    """How far the walks of one process have come, by state and queue."""

    def __init__(self) -> None:
        self._places: dict[tuple[str, str], Place] = {}
        self._kinds: frozenset[str] = frozenset()
        self._since = time.monotonic()

    def begin(self, kinds: frozenset[str]) -> None:
        """Begin a tick; these kinds have their own retention."""
        now = time.monotonic()
        if kinds != self._kinds or now - self._since > _START_OVER_SECONDS:
            self._places, self._kinds, self._since = {}, kinds, now

    def place(self, state: str, queue: str) -> Place | None:
        """Where to continue."""
        return self._places.get((state, queue))

    def passed(self, state: str, queue: str, place: Place) -> None:
        """The walk has come up to here, this place included."""
        self._places[state, queue] = place

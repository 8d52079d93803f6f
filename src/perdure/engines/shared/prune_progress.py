"""How far a pruner has passed finished jobs that their kind keeps longer than the default.

The pruner goes along the index of a state and queue, oldest first. Jobs of kinds that have a time of their own stay
where they are, so a second walk would meet them all again. This remembers where the last walk ended; earlier jobs
are kept by their kinds. Every hour the walk begins anew: a clock that was put back, or a kind that has lost its
own time, may have left something there.
"""

from __future__ import annotations

import time
from typing import Any, Final

_START_OVER_SECONDS: Final = 3_600.0  # seconds

Place = tuple[Any, str]
"""When a job ended, and its id."""


class PruneProgress:
    """The places up to which the walks of one process have come, by state and queue."""

    def __init__(self) -> None:
        self._places: dict[tuple[str, str], Place] = {}
        self._kinds: frozenset[str] = frozenset()
        self._since = time.monotonic()

    def begin(self, kinds: frozenset[str]) -> None:
        """A tick begins, with these kinds that have times of their own."""
        now = time.monotonic()
        if kinds != self._kinds or now - self._since > _START_OVER_SECONDS:
            self._places, self._kinds, self._since = {}, kinds, now

    def place(self, state: str, queue: str) -> Place | None:
        """Where to go on."""
        return self._places.get((state, queue))

    def passed(self, state: str, queue: str, place: Place) -> None:
        """The walk has come up to here, this place included."""
        self._places[state, queue] = place

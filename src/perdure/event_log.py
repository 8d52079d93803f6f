"""The log of what happens: a line for each event, and few for a database that is away.

While it is, each background task meets it, and tells so whenever it has tried again. The first of them says it all;
from then on one line in ten seconds tells that it is still so, with how many were left out, and one that it is over.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from msgspec.structs import asdict

from perdure.events import Event, StoreRecovered, StoreTrouble

_LEVELS: Final = {"info": 20, "warning": 30, "error": 40}
_STILL_EVERY: Final = 10.0


class EventLog:
    """The listener that writes the log."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._told_at: float | None = None  # of trouble that is not over
        self._left_out = 0

    def __call__(self, event: Event) -> None:
        """Write a line, unless it would say what the ones before it have said."""
        if isinstance(event, StoreTrouble):
            self._trouble(event)
        elif isinstance(event, StoreRecovered):
            if self._told_at is not None:
                self._told_at = None
                self._left_out = 0
                _write(event)
        else:
            _write(event)

    def _trouble(self, event: StoreTrouble) -> None:
        now = self._monotonic()
        if self._told_at is not None and now < self._told_at + _STILL_EVERY:
            self._left_out += 1
            return
        if self._left_out:
            _write(event, left_out=self._left_out)
        else:
            _write(event)
        self._told_at = now
        self._left_out = 0


def _write(event: Event, **more: int) -> None:
    import structlog  # noqa: PLC0415 - it is slow to load, and a producer needs no log

    structlog.stdlib.get_logger("perdure").log(_LEVELS[event.level], event.sentence, **asdict(event), **more)

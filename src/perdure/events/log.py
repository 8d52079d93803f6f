"""The log of what happens: a line for each event, and few for a database that is away.

While it is, each background task meets it, and tells so whenever it has tried again. The first of them says it all;
from then on one line in ten seconds tells that it is still so, with how many were left out, and one that it is over.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any, Final

from msgspec.structs import asdict

from perdure.errors import SettingsError
from perdure.events import (
    Emitter,
    Event,
    JobDied,
    JobRetrying,
    JobStarted,
    JobSucceeded,
    OfAJob,
    StoreRecovered,
    StoreTrouble,
)

_LEVELS: Final = {"debug": 10, "info": 20, "warning": 30, "error": 40}
_STILL_EVERY: Final = 10.0
_SECOND: Final = 1.0
_UNLOGGED: Final = {"ref", "meta", "next_at"}  # the line has the wait, and the ref where there is one


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


class AttemptLog:
    """A line when an attempt starts and one when it succeeds; what fails is in the log anyway.

    At most `per_second` lines are written in a second. After that the log stops listening until the second is over, so
    that a worker at full speed pays for no more events than it logs.
    """

    def __init__(self, level: str = "info", per_second: int = 50) -> None:
        if level not in _LEVELS:
            raise SettingsError("level", f"must be one of {', '.join(_LEVELS)}, got {level!r}")
        if isinstance(per_second, bool) or not isinstance(per_second, int) or per_second < 1:
            raise SettingsError("per_second", f"must be a whole number of at least 1, got {per_second!r}")
        self._level = level
        self._per_second = per_second
        self._emitter: Emitter | None = None
        self._stop: Callable[[], None] | None = None
        self._written = 0

    def follow(self, emitter: Emitter) -> Callable[[], None]:
        """Begin to write, and return the way to stop."""
        self._emitter = emitter
        self._stop = emitter.subscribe(self._hear, JobStarted, JobSucceeded)
        return self._end

    def _end(self) -> None:
        self._emitter = None
        self._be_deaf()

    def _be_deaf(self) -> None:
        if self._stop is not None:
            self._stop()
            self._stop = None

    def _hear(self, event: Event) -> None:
        if self._written == 0:
            asyncio.get_running_loop().call_later(_SECOND, self._begin_second)
        self._written += 1
        if self._written <= self._per_second:
            _write(event, self._level)
        else:
            _note(f"more than {self._per_second} lines a second: the other attempts of this second are not logged")
            self._be_deaf()

    def _begin_second(self) -> None:
        self._written = 0
        if self._emitter is not None and self._stop is None:
            self._stop = self._emitter.subscribe(self._hear, JobStarted, JobSucceeded)


def _write(event: Event, level: str | None = None, **more: int) -> None:
    fields: dict[str, Any] = asdict(event)
    if isinstance(event, OfAJob):
        fields = {name: value for name, value in fields.items() if name not in _UNLOGGED}
        if event.ref is not None:
            fields["ref"] = event.ref
    if isinstance(event, JobDied | JobRetrying) and (traceback := fields.pop("traceback")) is not None:
        fields["exception"] = traceback
    _logger().log(_LEVELS[level or event.level], event.sentence, **fields, **more)


def _note(text: str) -> None:
    _logger().info(text)


def _logger() -> Any:
    import structlog  # noqa: PLC0415 - it is slow to load, and a producer needs no log

    return structlog.stdlib.get_logger("perdure")

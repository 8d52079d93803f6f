"""The log of events: one line for each, and few lines while the database is away.

During an outage, every background task fails and retries, and each failure is an event. The log writes the first of
them, then one line every ten seconds with the number left out, and one line when the outage is over.
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
_REPEAT_INTERVAL_SECONDS: Final = 10.0
_SECOND: Final = 1.0
Fields = Callable[[], dict[str, str]]
_UNLOGGED: Final = {"ref", "meta", "next_at", "stored"}  # the line has the wait, and the ref if there is one


class EventLog:
    """The listener that writes the log. `more` are fields of every line that is not about the database."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic, more: Fields = dict) -> None:
        self._monotonic = monotonic
        self._more = more
        self._told_at: float | None = None  # of an outage that is not over
        self._left_out = 0

    def __call__(self, event: Event) -> None:
        """Write a line, unless it would repeat the ones before it."""
        if isinstance(event, StoreTrouble):
            self._trouble(event)
        elif isinstance(event, StoreRecovered):
            if self._told_at is not None:
                self._told_at = None
                self._left_out = 0
                _write(event)
        else:
            _write(event, **self._more())

    def _trouble(self, event: StoreTrouble) -> None:
        now = self._monotonic()
        if self._told_at is not None and now < self._told_at + _REPEAT_INTERVAL_SECONDS:
            self._left_out += 1
            return
        if self._left_out:
            _write(event, left_out=self._left_out)
        else:
            _write(event)
        self._told_at = now
        self._left_out = 0


class AttemptLog:
    """A line when an attempt starts and one when it succeeds; failures are logged anyway.

    At most `per_second` lines are written per second. Beyond that the log unsubscribes until the second is over, so a
    worker at full speed pays only for the events that it logs.
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
        self._more: Fields = dict

    def follow(self, emitter: Emitter, more: Fields = dict) -> Callable[[], None]:
        """Start writing, with the fields that `more` gives; returns a function that stops it."""
        self._emitter = emitter
        self._more = more
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
            _write(event, self._level, **self._more())
        else:
            _note(f"more than {self._per_second} lines a second: the other attempts of this second are not logged")
            self._be_deaf()

    def _begin_second(self) -> None:
        self._written = 0
        if self._emitter is not None and self._stop is None:
            self._stop = self._emitter.subscribe(self._hear, JobStarted, JobSucceeded)


def _write(event: Event, level: str | None = None, **more: int | str) -> None:
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

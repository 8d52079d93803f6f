"""Stores the newest log lines of handlers with their jobs: best effort, and never blocks a handler.

`ctx.log` writes to the log, and passes each line above the log level to the attempt's `AttemptLines`, from any thread.
The worker's one `LineKeeper` writes the lines of all attempts together, at most every half second and before an attempt
ends. A failed write is reported and not retried: the log has the lines.

While an attempt has a transaction open (`ctx.transaction()`) its lines are held: on SQLite no one else can write then.
They are committed with the acknowledgement, or written after a rollback.
"""

from __future__ import annotations

import asyncio
import logging
import sys
import threading
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import datetime
from typing import Any, Final

from perdure.domain.jobs.job import Claim
from perdure.domain.jobs.log_lines import NewLine, cut
from perdure.events import Emitter, StoreTrouble
from perdure.lifecycle.bridges.from_thread import result_of
from perdure.storage.flows import FlowStore

LINES_INTERVAL_SECONDS: Final = 0.5
_LEVELS: Final = {"warn": "warning", "exception": "error", "fatal": "critical", "err": "error"}
_NOT_SHOWN: Final = frozenset(
    {"event", "job_id", "kind", "attempt", "positional_args", "exc_info", "exception", "stack_info", "stacklevel"}
    | {"trace_id", "span_id"}  # of the app's tracer: the log has them
)


class LineKeeper:
    """Writes the lines of all attempts of one worker, `keep` of each job; used on the worker's event loop."""

    def __init__(self, store: FlowStore, emitter: Emitter, keep: int) -> None:
        self.keep = keep
        self.loop = asyncio.get_running_loop()
        self._store = store
        self._emitter = emitter
        self._speakers: list[AttemptLines] = []
        self._task: asyncio.Task[None] | None = None
        self._one_at_a_time = asyncio.Lock()

    def hear(self, lines: AttemptLines) -> None:
        """Write the lines of this attempt soon."""
        self._speakers.append(lines)
        if self._task is None:
            self._task = self.loop.create_task(self._write_soon())

    async def flush(self, lines: AttemptLines | None = None, *, hold: bool = False) -> None:
        """Write all lines, including those of this attempt; with `hold` none of its lines are written from then on."""
        async with self._one_at_a_time:  # so that lines in progress are written too when it returns
            speakers, self._speakers = self._speakers, []
            batch = [line for speaker in dict.fromkeys(speakers) for line in speaker.take()]
            if lines is not None:
                batch += lines.take()
            await self._write(batch)
            if lines is not None:
                lines.held = hold

    async def close(self) -> None:
        """Write nothing more."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _write_soon(self) -> None:
        try:
            while self._speakers:
                await asyncio.sleep(LINES_INTERVAL_SECONDS)
                await self.flush()
        finally:
            self._task = None

    async def _write(self, batch: list[NewLine]) -> None:
        if batch:
            try:
                await self._store.save_lines(batch, self.keep)
            except Exception as error:  # noqa: BLE001 - the log has them
                self._emitter.emit(
                    StoreTrouble("log lines", f"{type(error).__name__}: {error}", LINES_INTERVAL_SECONDS)
                )


class AttemptLines:
    """The log lines of one attempt that are not written yet; any thread may add to them.

    `now` is the database's clock, as well as it is known. `blocking`: the handler runs in a thread.
    """

    def __init__(self, claim: Claim, keeper: LineKeeper, now: Callable[[], datetime], *, blocking: bool) -> None:
        self.held = False
        self.keep = keeper.keep
        self._claim = claim
        self._keeper = keeper
        self._now = now
        self._blocking = blocking
        self._lock = threading.Lock()
        self._lines: deque[NewLine] = deque(maxlen=keeper.keep)
        self._dropped = 0
        self._is_scheduled = False
        self._is_used = False

    def add(self, level: str, text: str) -> None:
        """Add a line; beyond the limit for a job, the oldest are dropped."""
        self._is_used = True
        line = NewLine(claim=self._claim, at=self._now(), level=level, text=cut(text))
        with self._lock:
            self._dropped += len(self._lines) == self.keep
            self._lines.append(line)
            if self._is_scheduled or self.held:
                return
            self._is_scheduled = True
        with suppress(RuntimeError):  # the worker has closed: no one looks any more
            self._keeper.loop.call_soon_threadsafe(self._keeper.hear, self)

    def take(self) -> list[NewLine]:
        """The lines to write now; none while writing is held."""
        return [] if self.held else self.take_all()

    def take_all(self) -> list[NewLine]:
        """All lines that are not written; if lines were dropped, one line in their place says how many."""
        with self._lock:
            self._is_scheduled = False
            lines, dropped = list(self._lines), self._dropped
            self._lines.clear()
            self._dropped = 0
        if dropped and len(lines) > 1:
            first = lines[0]
            text = f"… {dropped + 1:,} lines dropped"
            lines[0] = NewLine(claim=first.claim, at=first.at, level="info", text=text)
        return lines

    async def hold(self) -> None:
        """Write the lines so far, and hold back later ones."""
        if not self._is_used:
            self.held = True
            return
        await self._reach(hold=True)

    async def write_rest(self) -> None:
        """Write the lines so far: the attempt ends."""
        self.held = False
        await self._reach(hold=False)

    async def _reach(self, *, hold: bool) -> None:
        flushing = self._keeper.flush(self, hold=hold)
        if not self._blocking:
            await flushing
            return
        try:
            future = asyncio.run_coroutine_threadsafe(flushing, self._keeper.loop)
        except RuntimeError:  # the worker has closed
            flushing.close()
            return
        result_of(future)


class Kept:
    """A processor of structlog, before all others: lines above the log level are stored with the job."""

    def __init__(self, lines: AttemptLines) -> None:
        self._lines = lines

    def __call__(self, logger: Any, method: str, event: Any) -> Any:
        """Store a line and pass it on unchanged; the log reports errors in it."""
        level = _LEVELS.get(method, method)
        number = logging.getLevelNamesMapping().get(level.upper(), logging.NOTSET)
        if not isinstance(logger, logging.Logger) or logger.isEnabledFor(number):
            with suppress(Exception):
                self._lines.add(level, rendered(event))
        return event


def rendered(event: Mapping[str, Any]) -> str:
    """A line as text: the message, then `key=value` for each field that differs between lines of the job."""
    said = str(event.get("event", ""))
    if args := event.get("positional_args"):
        with suppress(TypeError, ValueError):
            said %= args
    pieces = [said, *(f"{key}={_value(value)}" for key, value in event.items() if key not in _NOT_SHOWN)]
    if (error := error_of(event.get("exc_info"))) is not None:
        pieces.append(f"({type(error).__name__}: {error})")
    return " ".join(pieces)


def _value(value: object) -> str:
    if isinstance(value, str):
        return value if value and " " not in value else repr(value)
    try:
        return repr(value)
    except Exception:  # noqa: BLE001 - it is the app's own code
        return f"<{type(value).__name__}>"


def error_of(exc_info: object) -> BaseException | None:
    """The exception that a line was logged with."""
    if isinstance(exc_info, tuple):
        exc_info = exc_info[1]
    if isinstance(exc_info, BaseException):
        return exc_info
    return sys.exception() if exc_info else None

"""Periodic functions of the app (`@app.every`), and the loop that calls them.

A call is not a job, and nothing is stored: work that must not be lost belongs in a job.
"""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import math
import threading
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from enum import StrEnum
from typing import Any, Final

from msgspec import Struct

from perdure.clock import Clock
from perdure.domain.duration import Duration
from perdure.errors import SettingsError
from perdure.events import Emitter
from perdure.kinds.kind import is_async
from perdure.lifecycle.loops.intervals import read_interval, read_limit
from perdure.lifecycle.loops.leadership import Leadership
from perdure.lifecycle.loops.loop import Loop
from perdure.policy.outage_backoff import OutageLimits
from perdure.policy.retries.jitter import Jitter
from perdure.storage.fleet.leaders import LeaderStore

_NAME_LIMIT_CHARACTERS: Final = 100
_TAKES: Final = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


class Per(StrEnum):
    """Who calls a periodic function."""

    PROCESS = "process"  # every worker process
    FLEET = "fleet"  # only the leader


class Periodic(Struct, frozen=True, kw_only=True):
    """A periodic function as declared; made by `periodic`, which checks it."""

    name: str
    function: Callable[[], Any]
    every: timedelta
    limit: timedelta
    at_start: bool
    jitter: float
    per: Per


def periodic(
    function: Callable[[], Any],
    every: Duration,
    *,
    limit: Duration | None = None,
    at_start: bool = True,
    jitter: float = 0.1,
    per: Per | str = Per.PROCESS,
    name: str | None = None,
) -> Periodic:
    """Declare a function that is called at this interval; invalid values are refused by name.

    `limit` is the interval unless given. `jitter` spreads the calls by that share of the interval: 0.1 means ±10 %.
    """
    name = _name(function, name)
    _check_function(function, name)
    interval = read_interval(f"every of {name}", every)
    if isinstance(jitter, bool) or not (isinstance(jitter, int | float) and math.isfinite(jitter) and 0 <= jitter < 1):
        raise SettingsError(
            f"jitter of {name}", f"must be at least 0 and less than 1 (0.1 means ±10 %), got {jitter!r}"
        )
    return Periodic(
        name=name,
        function=function,
        every=interval,
        limit=interval if limit is None else read_limit(f"limit of {name}", limit),
        at_start=bool(at_start),
        jitter=jitter,
        per=_per(name, per),
    )


class PeriodicLoop(Loop[None]):
    """Calls a periodic function: an async one as a task, a plain one in its own thread.

    With a `leadership` it calls only while leading, is a candidate for as long as it runs, and with `at_start` begins
    at once when it takes the lead. It steps down when its last call is over.
    """

    is_patient = False  # the function's errors are its own; it is called again at its next regular time

    def __init__(self, declared: Periodic, emitter: Emitter, leadership: Leadership | None = None) -> None:
        super().__init__(emitter)
        self.name = declared.name
        self.interval = declared.every
        self.limit = declared.limit
        self.at_start = declared.at_start
        self.jitter = Jitter.ratio(declared.jitter)
        self.leadership = leadership
        self._function = declared.function
        self._is_async = is_async(declared.function)
        if leadership is not None and declared.at_start:
            leadership.on_taken = self.wake

    @classmethod
    def of(cls, declared: Periodic, emitter: Emitter, store: LeaderStore, holder: str, clock: Clock) -> PeriodicLoop:
        """The loop of a declared function; `holder` names this process in the lease."""
        if declared.per is Per.PROCESS:
            return cls(declared, emitter)
        return cls(declared, emitter, Leadership(store, f"loop:{declared.name}", holder, emitter, clock))

    async def tick(self) -> None:
        """Call the function once."""
        result = self._function() if self._is_async else await _in_thread(self._function, self.name)
        if inspect.isawaitable(result):
            await result

    def use_outage(self, limits: OutageLimits) -> None:
        """Apply these limits to the leadership; database errors inside the function are errors of the function."""
        super().use_outage(limits)
        if self.leadership is not None:
            self.leadership.use_outage(limits)

    def is_wanted(self) -> bool:
        """Whether this process should call the function now."""
        return self.leadership is None or self.leadership.is_leading

    async def run(self) -> None:
        """Call the function at its interval until stopped."""
        if self.leadership is None:
            await super().run()
            return
        candidate = asyncio.get_running_loop().create_task(self.leadership.run(), name=f"perdure lead of {self.name}")
        try:
            await super().run()
            self.leadership.stop()
            await candidate
        finally:
            candidate.cancel()
            await asyncio.gather(candidate, return_exceptions=True)


async def _in_thread(function: Callable[[], Any], name: str) -> Any:
    """Call a function in a daemon thread, which cannot be stopped: this ends when the function does, not before."""
    loop = asyncio.get_running_loop()
    over = asyncio.Event()
    outcome: list[tuple[Any, BaseException | None]] = []
    context = contextvars.copy_context()

    def call() -> None:
        try:
            outcome.append((context.run(function), None))
        except BaseException as error:  # noqa: BLE001 - it is raised to the caller that waits
            outcome.append((None, error))
        with suppress(RuntimeError):  # the event loop is closed, and no caller waits
            loop.call_soon_threadsafe(over.set)

    threading.Thread(target=call, name=f"perdure-{name}", daemon=True).start()
    cancelled: asyncio.CancelledError | None = None
    while not outcome:
        try:
            await over.wait()
        except asyncio.CancelledError as error:
            cancelled = error
    result, failure = outcome[0]
    if failure is not None:
        raise failure
    if cancelled is not None:
        raise cancelled
    return result


def _name(function: object, name: str | None) -> str:
    given = getattr(function, "__name__", type(function).__name__) if name is None else name
    if not isinstance(given, str) or not given.strip() or not given.isprintable():
        raise SettingsError("name", f"of a periodic function must be printable text, got {given!r}")
    if len(given) > _NAME_LIMIT_CHARACTERS:  # of a fleet it is a key in the database
        raise SettingsError(
            "name", f"of a periodic function must have at most {_NAME_LIMIT_CHARACTERS} characters, got {len(given)}"
        )
    return given


def _check_function(function: object, name: str) -> None:
    if not callable(function):
        raise SettingsError(f"function of {name}", f"must be a function, got {function!r}")
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise SettingsError(f"function of {name}", "must not yield: a periodic function returns nothing")
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # a built-in function without a signature
        return
    needed = [p.name for p in parameters if p.default is p.empty and p.kind not in _TAKES]
    if needed:
        raise SettingsError(
            f"function of {name}",
            f"must take no parameters, but needs {', '.join(needed)}: bind them, or make it a job",
        )


def _per(name: str, per: str) -> Per:
    try:
        return Per(per)
    except ValueError:
        raise SettingsError(f"per of {name}", f"must be one of {', '.join(Per)}, got {per!r}") from None

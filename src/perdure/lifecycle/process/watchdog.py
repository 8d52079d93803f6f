"""Reports a blocked event loop, a slow call to the store and a stuck heartbeat, with the stack.

The watchdog is a thread that looks a few times a second. The watched parts only count: a call to the store counts
itself in and out, a heartbeat counts its beats, the event loop answers a ping. The watchdog measures durations, so that
the working paths read no clock.

An incident is reported when it has lasted too long, again whenever it has doubled, and, if it concerns the event loop,
a last time when it is over. While the loop answers, these events are emitted on the loop, as all others are. The event
of a blocked loop comes from the watchdog's thread, because the loop cannot emit it.

C code may keep the whole interpreter, and block the watchdog too. The watchdog then finds that it has overslept; it
runs as soon as the interpreter is released, when the guilty frame is still on the stack.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterable, Iterator
from datetime import timedelta
from typing import Any, Final, Protocol

from msgspec import Struct

from perdure.clock import Clock
from perdure.events import Emitter, Event, EventLoopBlocked, HeartbeatStuck, LoopFailed, StoreSlow
from perdure.lifecycle.process.stacks import Occupied, callback_frames, stack_text, task_frames, thread_frames

_LOOKS_PER_LIMIT: Final = 4  # per shortest time that is reported
_LONGEST_REST_SECONDS: Final = 0.5
_SHORTEST_REST_SECONDS: Final = 0.05
_REPEAT_AFTER_SECONDS: Final = 10.0  # after a report; before, only one twice as long is reported
_OVER: Final = "it is over: the event loop runs again"
_ENGINE_THREAD_PREFIX: Final = "perdure-sqlite"


class StoreCall:
    """A place that calls the store, one call at a time: `with call:` around the call is its only cost."""

    __slots__ = ("serial", "task", "what")

    def __init__(self, what: str) -> None:
        self.what = what
        self.serial = 0
        self.task: asyncio.Task[Any] | None = None

    def __enter__(self) -> None:
        self.serial += 1
        self.task = asyncio.current_task()

    def __exit__(self, *_: object) -> None:
        self.task = None


class Beating(Protocol):
    """A heartbeat as the watchdog sees it."""

    beats: int  # that the store has answered
    call: StoreCall

    @property
    def ident(self) -> int | None:
        """Its thread."""


class WatchdogLimits(Struct, frozen=True, kw_only=True):
    """How long the event loop may be blocked, a call to the store may take, and a heartbeat may be absent."""

    blocked_after: timedelta
    slow_store_after: timedelta
    beat_within: timedelta


class Watchdog:
    """Watches one event loop, and the calls and the heartbeat given to it. `look` is one look."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        emitter: Emitter,
        clock: Clock,
        *,
        limits: WatchdogLimits,
        calls: Iterable[StoreCall],
        occupied: Callable[[], Iterable[Occupied]],
    ) -> None:
        self._loop = loop
        self._emitter = emitter
        self._clock = clock
        self._blocked_after = limits.blocked_after.total_seconds()
        self._occupied = occupied
        self._rest = min(max(self._blocked_after / _LOOKS_PER_LIMIT, _SHORTEST_REST_SECONDS), _LONGEST_REST_SECONDS)
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="perdure-watchdog", daemon=True)
        self._loop_thread: int | None = None
        self._asked = 0
        self._answered = 0
        self._expected: float | None = None
        self._pings = _Age(self._blocked_after)
        self._calls = [(call, _Age(limits.slow_store_after.total_seconds())) for call in calls]
        self._beats = _Age(limits.beat_within.total_seconds())
        self._beat_calls = _Age(limits.slow_store_after.total_seconds())
        self.heartbeat: Beating | None = None

    def start(self) -> None:
        """Watch from a thread of its own until stopped; call this on the loop."""
        self._loop_thread = threading.get_ident()
        self._thread.start()

    def stop(self) -> None:
        """Stop watching."""
        self._stopped.set()
        if self._thread.is_alive():
            self._thread.join(1.0)

    def look(self) -> None:
        """Look at everything once, and report what has lasted too long."""
        now = self._clock.monotonic()
        self._look_at_myself(now)
        self._look_at_loop(now)
        for call, age in self._calls:
            self._look_at_call(call, age, now)
        self._look_at_heartbeat(now)
        self._expected = now + self._rest

    def _run(self) -> None:
        while not self._stopped.wait(self._rest):
            try:
                self.look()
            except Exception as error:  # noqa: BLE001 - it must go on watching
                self._emit(LoopFailed("watchdog", f"{type(error).__name__}: {error}"))

    def _look_at_myself(self, now: float) -> None:
        """Whether this thread itself was blocked."""
        if self._expected is None:
            return
        late = now - self._expected
        if self._asked == self._answered and late >= self._blocked_after and self._pings.is_news(late, now):
            said = f"for {late:.1f} s nothing ran: C code kept the interpreter, or the process was stopped"
            self._emit(EventLoopBlocked(round(late, 3), "\n".join([said, *self._suspects()])))

    def _look_at_loop(self, now: float) -> None:
        if self._asked == self._answered:
            over = self._pings.ended(now)
            if over is not None:
                self._emit(EventLoopBlocked(over, _OVER))
            self._asked += 1
            self._pings.begin(self._asked, now)
            try:
                self._loop.call_soon_threadsafe(self._answer, self._asked)
            except RuntimeError:  # the loop is closed
                self._stopped.set()
            return
        seconds = self._pings.too_old(now)
        if seconds is not None:
            self._emitter.emit(EventLoopBlocked(seconds, "\n".join(self._suspects())))

    def _look_at_call(self, call: StoreCall, age: _Age, now: float) -> None:
        task, serial = call.task, call.serial
        if task is None:
            age.ended(now)
            return
        age.begin(serial, now)
        seconds = age.too_old(now)
        if seconds is not None:
            self._emit(StoreSlow(call.what, seconds, "\n".join(_waiting(task))))

    def _look_at_heartbeat(self, now: float) -> None:
        heartbeat = self.heartbeat
        if heartbeat is None:
            self._beats.ended(now)
            return
        self._look_at_call(heartbeat.call, self._beat_calls, now)
        self._beats.begin((id(heartbeat), heartbeat.beats), now)
        seconds = self._beats.too_old(now)
        if seconds is None:
            return
        task = heartbeat.call.task
        lines = ["the heartbeat's thread:", stack_text(thread_frames(heartbeat.ident))]
        self._emit(HeartbeatStuck(seconds, "\n".join([*lines, *(_waiting(task) if task else ())])))

    def _answer(self, ping: int) -> None:
        self._loop_thread = threading.get_ident()
        self._answered = ping

    def _suspects(self) -> Iterator[str]:
        """The stack of the loop's thread, under the name of the attempt that it is in; then attempts in threads."""
        occupied = list(self._occupied())
        current = asyncio.current_task(self._loop)
        guilty = next((str(one.attempt) for one in occupied if one.task is not None and one.task is current), None)
        yield guilty or (f"task {current.get_name()}" if current else "no task: the loop itself, or a callback")
        yield stack_text(callback_frames(self._loop_thread))
        for one in occupied:
            if one.thread is not None:
                yield from (f"beside it, in a thread: {one.attempt}", stack_text(thread_frames(one.thread)))

    def _emit(self, event: Event) -> None:
        """Emit on the loop, or from here if the loop does not answer."""
        if self._asked == self._answered:
            try:
                self._loop.call_soon_threadsafe(self._emitter.emit, event)
            except RuntimeError:  # the loop has ended
                return
        else:
            self._emitter.emit(event)


class _Age:
    """How long the same incident has lasted, and whether to report it."""

    def __init__(self, limit: float) -> None:
        self._limit = limit
        self._what: object = None
        self._since = 0.0
        self._reported_age = 0.0  # of this incident; 0: nothing
        self._last: tuple[float, float] | None = None  # when something was told, and how long it had lasted

    def begin(self, what: object, now: float) -> None:
        """The incident is going on; no change if it was already."""
        if what != self._what:
            self._what, self._since, self._reported_age = what, now, 0.0

    def too_old(self, now: float) -> float | None:
        """Its age, if it should be reported now."""
        age = now - self._since
        if age < max(self._limit, 2 * self._reported_age) or not (self._reported_age or self.is_news(age, now)):
            return None
        self._reported_age = age
        self._last = now, age
        return round(age, 3)

    def is_news(self, age: float, now: float) -> bool:
        """Whether this age differs enough from the last report; it then counts as reported."""
        if self._last is not None and now - self._last[0] < _REPEAT_AFTER_SECONDS and age < 2 * self._last[1]:
            return False
        self._last = now, age
        return True

    def ended(self, now: float) -> float | None:
        """It is over; its age, if it was reported."""
        age = round(now - self._since, 3) if self._reported_age else None
        self._what, self._reported_age = None, 0.0
        return age


def _waiting(task: asyncio.Task[Any]) -> Iterator[str]:
    frames, awaits = task_frames(task)
    yield f"task {task.get_name()}"
    yield stack_text(frames)
    yield f"  awaits {awaits}"
    for thread in threading.enumerate():
        if thread.name.startswith(_ENGINE_THREAD_PREFIX):
            yield from (f"thread {thread.name}", stack_text(thread_frames(thread.ident)))

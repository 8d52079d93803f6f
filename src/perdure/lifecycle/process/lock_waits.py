"""Where threads and tasks wait for locks that others hold, by samples of their stacks.

A thread waits for a lock on a line such as `with lock:` or `lock.acquire()`, or inside an `acquire` of the standard
library. A thread that waits for work, in a queue or a pool, is left out. Waits of a few milliseconds are mostly missed.
"""

from __future__ import annotations

import asyncio
import concurrent.futures.thread
import linecache
import queue
import re
import selectors
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from types import FrameType
from typing import Any, Final

from msgspec import Struct

from perdure.lifecycle.process.held_interpreter import held_interpreter

LONGEST_LOCK_WATCH_SECONDS: Final = 25.0
_SAMPLE_SECONDS: Final = 0.005
_PLACES_SHOWN: Final = 50
_FRAMES_READ: Final = 60
_LOCKING: Final = re.compile(r"\bwith\b.*(?:lock|mutex|condition)|\.acquire\(", re.IGNORECASE)
_WAITING_FILES: Final = frozenset(
    module.__file__ for module in (threading, queue, selectors, concurrent.futures.thread)
)


class LockWait(Struct, frozen=True):
    """A line of code, and how many seconds threads or tasks have waited there for a lock, added up."""

    where: str
    seconds: float


class LockWaits(Struct, frozen=True, kw_only=True):
    """Waits for locks in this many seconds, the longest first: of threads, and of tasks for locks of asyncio."""

    seconds: float
    samples: int
    threads: tuple[LockWait, ...]
    tasks: tuple[LockWait, ...]


class _Line(Struct, frozen=True):
    """The line at which a thread or task stands. `acquires`: it is inside a function of this name."""

    file: str
    number: int
    function: str
    acquires: bool

    @property
    def where(self) -> str:
        return f"{self.file}:{self.number} {self.function}"

    @property
    def is_lock(self) -> bool:
        if self.file in _WAITING_FILES:
            return self.acquires
        return _LOCKING.search(linecache.getline(self.file, self.number)) is not None


def sample_lock_waits(seconds: float, loop: asyncio.AbstractEventLoop) -> LockWaits:
    """Sample for this many seconds, 25 at most; blocks until then. `loop` is the one whose tasks are watched."""
    threads: Counter[_Line] = Counter()
    tasks: Counter[_Line] = Counter()
    me, samples = threading.get_ident(), 0
    started = before = time.monotonic()
    ends = started + min(seconds, LONGEST_LOCK_WATCH_SECONDS)
    while before < ends:
        time.sleep(_SAMPLE_SECONDS)
        now = time.monotonic()
        passed, before = now - before, now
        with held_interpreter():
            frames = sys._current_frames()  # noqa: SLF001 - the documented way to the stacks of other threads
            at = [_line(frame, _outwards(frame)) for ident, frame in frames.items() if ident != me]
            waiting = list(_locked_tasks(loop))
            del frames
        for line in at:
            threads[line] += passed  # type: ignore[assignment] # a counter of seconds
        for line in waiting:
            tasks[line] += passed  # type: ignore[assignment] # as above
        samples += 1
    return LockWaits(
        seconds=round(before - started, 6),
        samples=samples,
        threads=_longest((line, spent) for line, spent in threads.items() if line.is_lock),
        tasks=_longest(tasks.items()),
    )


def _line(frame: FrameType, stack: Iterable[FrameType]) -> _Line:
    code = frame.f_code
    acquires = any(one.f_code.co_name == "acquire" for one in stack if one.f_code.co_filename in _WAITING_FILES)
    return _Line(code.co_filename, frame.f_lineno, code.co_qualname, acquires)


def _outwards(frame: FrameType | None) -> Iterator[FrameType]:
    for _ in range(_FRAMES_READ):
        if frame is None:
            return
        yield frame
        frame = frame.f_back


def _locked_tasks(loop: asyncio.AbstractEventLoop) -> Iterator[_Line]:
    """The lines at which tasks wait for a lock of asyncio."""
    with suppress(RuntimeError):  # tasks came or went meanwhile
        for task in asyncio.all_tasks(loop):
            stack = list(_awaiting(task.get_coro()))
            in_locks = [frame for frame in stack if frame.f_code.co_filename == asyncio.locks.__file__]
            if in_locks and stack[-1] is in_locks[-1] and any(one.f_code.co_name == "acquire" for one in in_locks):
                own = [frame for frame in stack if frame not in in_locks]
                yield _line((own or stack)[-1], ())


def _awaiting(coroutine: Any) -> Iterator[FrameType]:
    for _ in range(_FRAMES_READ):
        frame = getattr(coroutine, "cr_frame", None)
        if frame is None:
            return
        yield frame
        coroutine = coroutine.cr_await


def _longest(waits: Iterable[tuple[_Line, float]]) -> tuple[LockWait, ...]:
    ranked = sorted(waits, key=lambda item: -item[1])[:_PLACES_SHOWN]
    return tuple(LockWait(line.where, round(spent, 6)) for line, spent in ranked)

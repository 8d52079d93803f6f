"""Where a running process spends its time, memory and waits. Everything here only reads.

Time and waits are sampled from a thread of their own: the stacks of all threads, some hundred times a second, for a few
seconds. How much processor time a thread has used between two samples is asked of the kernel, so that a thread which
waits is not mistaken for one that works.
"""

from __future__ import annotations

import asyncio
import concurrent.futures.thread
import gc
import linecache
import queue
import re
import resource
import selectors
import sys
import threading
import time
import tracemalloc
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import Any, Final

import msgspec

LONGEST: Final = 60.0
_EVERY: Final = 0.005
_MOST: Final = 50
_DEEPEST: Final = 60
_LOCKING: Final = re.compile(r"\bwith\b.*(?:lock|mutex|condition)|\.acquire\(", re.IGNORECASE)
_WAITING: Final = frozenset(module.__file__ for module in (threading, queue, selectors, concurrent.futures.thread))

Seconds = defaultdict[str, float]
Sample = Callable[[dict[int, FrameType], float], None]


class Place(msgspec.Struct, frozen=True):
    """Where something happens, and how much of it: seconds, or objects."""

    where: str
    amount: float


class Profile(msgspec.Struct, frozen=True, kw_only=True):
    """Processor time by function and by whole stack (`a;b;c`, as flame graphs take it), of all threads."""

    seconds: float
    samples: int
    cpu_seconds: float
    functions: tuple[Place, ...]
    stacks: tuple[Place, ...]


class Contention(msgspec.Struct, frozen=True, kw_only=True):
    """Seconds that threads and tasks have waited for locks, by place; `idle` are waits for work, which do no harm."""

    seconds: float
    samples: int
    threads: tuple[Place, ...]
    tasks: tuple[Place, ...]
    idle: tuple[Place, ...]


class Heap(msgspec.Struct, frozen=True, kw_only=True):
    """The memory of the process: how much now and at its peak, what it is made of, and where it grew when watched."""

    resident_kib: int | None
    peak_kib: int
    objects: int
    collections: tuple[int, ...]
    types: tuple[Place, ...]
    watched_seconds: float
    grown: tuple[Place, ...]


async def profile(seconds: float) -> Profile:
    """Sample for so long which functions use the processor."""
    functions, stacks = Seconds(float), Seconds(float)
    clocks: dict[int, float] = {}

    def look(frames: dict[int, FrameType], _: float) -> None:
        for ident, frame in frames.items():
            now = _cpu_time(ident)
            used = max(now - clocks.get(ident, now), 0.0)
            clocks[ident] = now
            if used:
                stack = [_name(one) for one in _outwards(frame)]
                functions[stack[0]] += used
                stacks[";".join(reversed(stack))] += used

    samples = await asyncio.to_thread(_sample, seconds, look)
    return Profile(
        seconds=seconds,
        samples=samples,
        cpu_seconds=round(sum(functions.values()), 6),
        functions=_places(functions),
        stacks=_places(stacks),
    )


async def contention(seconds: float) -> Contention:
    """Sample for so long who waits for a lock, and where."""
    threads, tasks, idle = Seconds(float), Seconds(float), Seconds(float)
    loop = asyncio.get_running_loop()

    def look(frames: dict[int, FrameType], passed: float) -> None:
        for frame in frames.values():
            where = _place(frame)
            if _is_idle(frame):
                idle[where] += passed
            elif frame.f_code.co_filename in _WAITING or _LOCKING.search(_source(frame)):
                threads[where] += passed
        for where in _locked_tasks(loop):
            tasks[where] += passed

    samples = await asyncio.to_thread(_sample, seconds, look)
    return Contention(
        seconds=seconds, samples=samples, threads=_places(threads), tasks=_places(tasks), idle=_places(idle)
    )


async def heap(seconds: float = 0.0) -> Heap:
    """What the memory is made of; with `seconds`, also where it grows meanwhile."""
    grown = await _growth(seconds) if seconds else ()
    objects = await asyncio.to_thread(gc.get_objects)
    types = Counter(type(one).__qualname__ for one in objects)
    return Heap(
        resident_kib=await asyncio.to_thread(_resident_kib),
        peak_kib=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss,
        objects=len(objects),
        collections=gc.get_count(),
        types=tuple(Place(name, count) for name, count in types.most_common(_MOST)),
        watched_seconds=seconds,
        grown=grown,
    )


def _resident_kib() -> int | None:
    """The memory that the process has now; None where the kernel does not tell."""
    with suppress(OSError):
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
        return pages * resource.getpagesize() // 1024
    return None


async def _growth(seconds: float) -> tuple[Place, ...]:
    was_on = tracemalloc.is_tracing()
    if not was_on:
        tracemalloc.start(1)
    try:
        before = await asyncio.to_thread(tracemalloc.take_snapshot)
        await asyncio.sleep(seconds)
        after = await asyncio.to_thread(tracemalloc.take_snapshot)
    finally:
        if not was_on:
            tracemalloc.stop()
    lines = await asyncio.to_thread(after.compare_to, before, "lineno")
    grown = [line for line in lines if line.size_diff > 0][:_MOST]
    return tuple(Place(f"{line.traceback[0].filename}:{line.traceback[0].lineno}", line.size_diff) for line in grown)


def _sample(seconds: float, look: Sample) -> int:
    """Look at all other threads again and again; how often."""
    me, samples = threading.get_ident(), 0
    began = before = time.monotonic()
    while before - began < seconds:
        time.sleep(_EVERY)
        now = time.monotonic()
        frames = sys._current_frames()  # noqa: SLF001 - the documented way to the stacks of other threads
        frames.pop(me, None)
        look(frames, now - before)
        before, samples = now, samples + 1
    return samples


def _cpu_time(ident: int) -> float:
    """The processor time of a thread, in seconds; 0 if it is gone."""
    with suppress(OSError):
        return time.clock_gettime(time.pthread_getcpuclockid(ident))
    return 0.0


def _outwards(frame: FrameType) -> Iterator[FrameType]:
    one: FrameType | None = frame
    for _ in range(_DEEPEST):
        if one is None:
            return
        yield one
        one = one.f_back


def _name(frame: FrameType) -> str:
    return f"{frame.f_code.co_qualname} ({frame.f_code.co_filename}:{frame.f_code.co_firstlineno})"


def _source(frame: FrameType) -> str:
    return linecache.getline(frame.f_code.co_filename, frame.f_lineno)


def _place(frame: FrameType) -> str:
    return f"{frame.f_code.co_filename}:{frame.f_lineno} {frame.f_code.co_qualname}"


def _is_idle(frame: FrameType) -> bool:
    """Whether a thread waits for work and not for a lock that another one holds: in a queue, a pool, an event."""
    names = {one.f_code.co_name for one in _outwards(frame) if one.f_code.co_filename in _WAITING}
    return frame.f_code.co_filename in _WAITING and "acquire" not in names


def _locked_tasks(loop: asyncio.AbstractEventLoop) -> Iterator[str]:
    """The places at which tasks wait for a lock of asyncio's."""
    with suppress(RuntimeError):  # tasks came or went meanwhile
        for task in asyncio.all_tasks(loop):
            stack = list(_awaiting(task.get_coro()))
            if stack and stack[-1].f_code.co_filename == asyncio.locks.__file__ and "acquire" in _names_of(stack):
                own = [frame for frame in stack if frame.f_code.co_filename != asyncio.locks.__file__]
                yield _place(own[-1] if own else stack[-1])


def _awaiting(coroutine: Any) -> Iterator[FrameType]:
    for _ in range(_DEEPEST):
        frame = getattr(coroutine, "cr_frame", None)
        if frame is None:
            return
        yield frame
        coroutine = coroutine.cr_await


def _names_of(stack: list[FrameType]) -> set[str]:
    return {frame.f_code.co_name for frame in stack}


def _places(seconds: Seconds) -> tuple[Place, ...]:
    most = sorted(seconds.items(), key=lambda item: -item[1])[:_MOST]
    return tuple(Place(where, round(amount, 6)) for where, amount in most)

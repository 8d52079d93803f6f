"""Where the time of this process goes, by samples of all threads: pure Python, and no code is slowed down by tracing.

A thread that waits in C code shows the line that called it. Lines on which threads only wait (for a lock, a socket or
work) are counted as idle, so that what is left is mostly what used the processor.
"""

from __future__ import annotations

import sys
import threading
import time
from collections import Counter
from types import CodeType, FrameType
from typing import Final

from msgspec import Struct

from perdure.lifecycle.process.held_interpreter import held_interpreter

LONGEST_PROFILE_SECONDS: Final = 25.0
_FRAMES_SHOWN: Final = 100
_STACKS_SHOWN: Final = 500
_STACKS_COUNTED: Final = 20_000
_IDLE: Final = frozenset(
    {
        "wait",
        "_wait",
        "select",
        "poll",
        "accept",
        "recv",
        "sleep",
        "_worker",
        "get",
        "acquire",
        "_recv",
        "join",
        "epoll",
    }
)
_IDLE_FILES: Final = ("threading.py", "selectors.py", "queue.py", "socket.py", "thread.py")


class HotLine(Struct, frozen=True, kw_only=True):
    """A function: the number of samples in which it ran itself, and in which it or a function that it called ran."""

    function: str
    file: str
    own: int
    total: int


class Profile(Struct, frozen=True, kw_only=True):
    """Samples of all threads. `stacks` are folded, outermost first, as flame graph tools read them."""

    seconds: float
    samples: int
    idle: int
    functions: tuple[HotLine, ...]
    stacks: tuple[tuple[str, int], ...]


def sample_profile(seconds: float, rate: int) -> Profile:
    """Sample for this many seconds, this many times a second; blocks until then."""
    stacks: Counter[tuple[CodeType, ...]] = Counter()
    idle, samples = 0, 0
    me = threading.get_ident()
    started = time.monotonic()
    ends = started + min(seconds, LONGEST_PROFILE_SECONDS)
    while (now := time.monotonic()) < ends:
        for codes in _read_stacks(me):
            samples += 1
            if codes is None:
                idle += 1
            elif len(stacks) < _STACKS_COUNTED:
                stacks[codes] += 1
        time.sleep(max(0.0, 1 / rate - (time.monotonic() - now)))
    return Profile(
        seconds=round(time.monotonic() - started, 3),
        samples=samples,
        idle=idle,
        functions=_hottest(stacks),
        stacks=tuple((_folded(codes), count) for codes, count in stacks.most_common(_STACKS_SHOWN)),
    )


def _read_stacks(me: int) -> list[tuple[CodeType, ...] | None]:
    """The stacks of all other threads; None stands for one that only waits."""
    with held_interpreter():
        frames = sys._current_frames()  # noqa: SLF001 - the documented way to the stacks of other threads
        return [None if _is_idle(frame) else _codes(frame) for ident, frame in frames.items() if ident != me]


def _is_idle(frame: FrameType) -> bool:
    code = frame.f_code
    return code.co_name in _IDLE and code.co_filename.endswith(_IDLE_FILES)


def _codes(frame: FrameType | None) -> tuple[CodeType, ...]:
    found: list[CodeType] = []
    while frame is not None and len(found) < _FRAMES_SHOWN:
        found.append(frame.f_code)
        frame = frame.f_back
    return tuple(reversed(found))


def _hottest(stacks: Counter[tuple[CodeType, ...]]) -> tuple[HotLine, ...]:
    own: Counter[CodeType] = Counter()
    total: Counter[CodeType] = Counter()
    for codes, count in stacks.items():
        own[codes[-1]] += count
        for code in set(codes):
            total[code] += count
    ranked = sorted(total, key=lambda code: (-own[code], -total[code]))[:_FRAMES_SHOWN]
    return tuple(
        HotLine(
            function=code.co_qualname,
            file=f"{code.co_filename}:{code.co_firstlineno}",
            own=own[code],
            total=total[code],
        )
        for code in ranked
    )


def _folded(codes: tuple[CodeType, ...]) -> str:
    return ";".join(code.co_qualname for code in codes)

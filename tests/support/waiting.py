"""Waits for a condition, for a bounded time: what tests with real processes do in place of sleeping."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final, TypeVar

Found = TypeVar("Found")

PATIENCE: Final = 30.0
_LOOK_EVERY: Final = 0.01
_ENDED: Final = frozenset("ZX")
_FUTILE: Final = 6  # times the patience: less than `faulthandler_timeout`, so that a test says what it waited for


async def until(condition: Callable[[], Found | None], within: float = PATIENCE) -> Found:
    """What the condition gives as soon as that is true; fails when the time is up."""
    deadline = time.monotonic() + within
    while not (found := condition()):
        assert time.monotonic() < deadline, f"nothing within {within} s"
        await asyncio.sleep(_LOOK_EVERY)
    return found


def until_sync(condition: Callable[[], Found | None], within: float = PATIENCE) -> Found:
    """The same, for tests without an event loop."""
    return asyncio.run(until(condition, within))


def while_progressing(
    condition: Callable[[], Found | None], progress: Callable[[], object], within: float = PATIENCE
) -> Found:
    """The same for as long as there is progress, on however busy a machine; fails after `within` seconds without any.

    Progress that leads nowhere is not waited for without end.
    """
    begun = last = time.monotonic()
    seen = progress()
    while not (found := condition()):
        now = time.monotonic()
        if (current := progress()) != seen:
            seen, last = current, now
        assert now - last < within, f"no progress within {within} s"
        assert now - begun < within * _FUTILE, f"progress, and nothing within {within * _FUTILE} s"
        time.sleep(_LOOK_EVERY)
    return found


def processor_time(pid: int) -> int:
    """What a process has used of the processors so far, in ticks; 0 if it is gone."""
    fields = _fields(Path(f"/proc/{pid}/stat"))
    return int(fields[11]) + int(fields[12]) if fields else 0


def is_gone(pid: int) -> bool:
    """Whether a process has ended; one that is only waited for has."""
    return _state(Path(f"/proc/{pid}/stat")) in _ENDED


def is_stopped(pid: int) -> bool:
    """Whether a process stands still after SIGSTOP: all of its threads, so it cannot take a lock any more."""
    return all(_state(file) in {"T", *_ENDED} for file in Path(f"/proc/{pid}/task").glob("*/stat"))


def _state(stat: Path) -> str:
    """The state of a process or thread, one letter: X also for one that is gone."""
    fields = _fields(stat)
    return fields[0] if fields else "X"


def _fields(stat: Path) -> list[str]:
    """What follows the name of a process or thread; nothing if it is gone."""
    try:
        return stat.read_text(encoding="utf-8").rpartition(")")[2].split()
    except OSError:
        return []


def text_of(file: Path) -> str:
    """What a file says; nothing while it is not there."""
    return file.read_text(encoding="utf-8") if file.exists() else ""

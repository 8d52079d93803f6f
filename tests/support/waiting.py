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
_FUTILE: Final = 10


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
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    except OSError:
        return 0
    fields = stat.rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])


def is_gone(pid: int) -> bool:
    """Whether a process has ended; one that is only waited for has."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    except OSError:
        return True
    return stat.rpartition(")")[2].split()[0] in {"Z", "X"}


def is_stopped(pid: int) -> bool:
    """Whether a process stands still after SIGSTOP: all of its threads, so it cannot take a lock any more."""
    stats = [file.read_text(encoding="utf-8") for file in Path(f"/proc/{pid}/task").glob("*/stat")]
    return all(stat.rpartition(")")[2].split()[0] == "T" for stat in stats)


def text_of(file: Path) -> str:
    """What a file says; nothing while it is not there."""
    return file.read_text(encoding="utf-8") if file.exists() else ""

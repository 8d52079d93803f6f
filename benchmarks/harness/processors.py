"""How busy the machine is: what more workers could still use."""

from __future__ import annotations

from pathlib import Path

_IDLE = slice(3, 5)  # idle, and idle because the disk is waited for
_ALL = slice(0, 8)


def processor_times() -> tuple[int, int]:
    """How long all processors together have been idle, and how long they have been there, in ticks."""
    ticks = [int(word) for word in Path("/proc/stat").read_text(encoding="ascii").splitlines()[0].split()[1:]]
    return sum(ticks[_IDLE]), sum(ticks[_ALL])


def in_use(before: tuple[int, int], after: tuple[int, int]) -> float:
    """Which share of them was in use between two looks.

    >>> in_use((10, 100), (15, 200))
    0.95
    """
    idle, there = (late - early for early, late in zip(before, after, strict=True))
    return 1 - idle / there if there else 0.0

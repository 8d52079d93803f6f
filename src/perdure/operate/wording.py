"""Long lists in short sentences."""

from __future__ import annotations

from collections.abc import Iterable


def listed(words: Iterable[str], joint: str = ", ", most: int = 5) -> str:
    """The first few of many, and how many more there are."""
    every = list(words)
    rest = f" and {len(every) - most} more" if len(every) > most else ""
    return joint.join(every[:most]) + rest

"""Long lists in short sentences."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

from perdure.domain.duration import format_duration


def listed(words: Iterable[str], joint: str = ", ", most: int = 5) -> str:
    """The first few of many, and how many more there are."""
    every = list(words)
    rest = f" and {len(every) - most} more" if len(every) > most else ""
    return joint.join(every[:most]) + rest


def some(count: int, thing: str) -> str:
    """`1 job`, `1,200 jobs`."""
    return f"{count:,} {thing}{'' if count == 1 else 's'}"


def told(at: datetime) -> str:
    """A time in a sentence: UTC, to the second."""
    return at.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%SZ")


def rounded(span: timedelta) -> str:
    """A span in a sentence, to the second."""
    return format_duration(timedelta(seconds=round(span.total_seconds())))

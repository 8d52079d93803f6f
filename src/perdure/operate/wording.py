"""Lists, times and spans in sentences."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Final

from perdure.domain.duration import format_duration

_TEN_MINUTES_SECONDS: Final = 600


def listed(words: Iterable[str], joint: str = ", ", most: int = 5) -> str:
    """The first few of many, and the number of the others."""
    every = list(words)
    rest = f" and {len(every) - most} more" if len(every) > most else ""
    return joint.join(every[:most]) + rest


def some(count: int, thing: str) -> str:
    """`1 job`, `1,200 jobs`."""
    return f"{count:,} {thing}{'' if count == 1 else 's'}"


def utc_text(at: datetime) -> str:
    """A time in a sentence: UTC, to the second."""
    return at.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%SZ")


def roughly(span: timedelta) -> str:
    """A span in a sentence, in its two largest units: `1d23h`, `9m`."""
    seconds = max(round(span.total_seconds()), 0)
    for large, small in ((86_400, 3_600), (3_600, 60)):
        if seconds >= large:
            return format_duration(timedelta(seconds=seconds - seconds % small))
    return format_duration(timedelta(seconds=seconds if seconds < _TEN_MINUTES_SECONDS else seconds - seconds % 60))


def rounded(span: timedelta) -> str:
    """A span in a sentence, to the second."""
    return format_duration(timedelta(seconds=round(span.total_seconds())))

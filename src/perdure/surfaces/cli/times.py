"""Times as people read them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final

_STEPS: Final = (
    ("d", timedelta(days=1)),
    ("h", timedelta(hours=1)),
    ("m", timedelta(minutes=1)),
    ("s", timedelta(seconds=1)),
)
_SHORT: Final = timedelta(milliseconds=500)
_PRECISE_BELOW: Final = timedelta(seconds=10)


def absolute(at: datetime) -> str:
    """The date and time in UTC, to the second."""
    return at.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%SZ")


def relative(at: datetime, now: datetime) -> str:
    """How long ago, or how far ahead: `3m ago`, `in 2h`, `now`."""
    if abs(at - now) < _SHORT:
        return "now"
    return f"{rough(now - at)} ago" if at < now else f"in {rough(at - now)}"


def both(at: datetime, now: datetime) -> str:
    """Absolute and relative together."""
    return f"{absolute(at)}  ({relative(at, now)})"


def rough(span: timedelta) -> str:
    """A span in its two largest units: `2d3h`, `5m`, `42s`."""
    if span >= timedelta(days=10):
        return f"{span.days}d"
    seconds = timedelta(seconds=max(round(span.total_seconds()), 1))
    for index, (unit, length) in enumerate(_STEPS):
        if seconds >= length:
            count, rest = divmod(seconds, length)
            if index + 1 == len(_STEPS):
                return f"{count}{unit}"
            smaller, step = _STEPS[index + 1]
            return f"{count}{unit}{rest // step}{smaller}" if rest >= step else f"{count}{unit}"
    return "1s"


def took(span: timedelta) -> str:
    """How long a thing took: exact where it was quick."""
    if span < timedelta(seconds=1):
        return f"{span / timedelta(milliseconds=1):.0f}ms"
    return f"{span.total_seconds():.1f}s" if span < _PRECISE_BELOW else rough(span)

"""Formats and parses times for people."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final

from msgspec import Struct

from perdure.domain.duration import parse_duration
from perdure.errors import ArgumentError

_STEPS: Final = (
    ("d", timedelta(days=1)),
    ("h", timedelta(hours=1)),
    ("m", timedelta(minutes=1)),
    ("s", timedelta(seconds=1)),
)
_NOW_WITHIN: Final = timedelta(milliseconds=500)
_PRECISE_BELOW: Final = timedelta(seconds=10)
_YEARS: Final = range(1970, 3000)
_EXAMPLES: Final = "write 2026-03-01T09:00Z, 2026-03-01T09:00+01:00, +2h, -7d or now"


def absolute(at: datetime) -> str:
    """The date and time in UTC, to the second."""
    return at.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%SZ")


def relative(at: datetime, now: datetime) -> str:
    """How long ago, or how far ahead: `3m ago`, `in 2h`, `now`."""
    if abs(at - now) < _NOW_WITHIN:
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
    """A duration: exact if it was short."""
    if span < timedelta(seconds=1):
        return f"{span / timedelta(milliseconds=1):.0f}ms"
    return f"{span.total_seconds():.1f}s" if span < _PRECISE_BELOW else rough(span)


class Moment(Struct, frozen=True):
    """A time as given: absolute, or relative to now."""

    at: datetime | None = None
    ahead: timedelta = timedelta(0)

    def when(self, now: datetime) -> datetime:
        """The absolute time."""
        return now + self.ahead if self.at is None else self.at


def read_time(option: str, text: str) -> Moment:
    """Parse a date and time with its zone (ISO 8601), `now`, or a distance from now such as `+2h` or `-7d`."""
    written = text.strip()
    if written == "now":
        return Moment()
    if written[:1] in {"+", "-"}:
        span = parse_duration(option, written[1:])
        return Moment(ahead=-span if written[0] == "-" else span)
    try:
        at = datetime.fromisoformat(written)
    except ValueError:
        raise ArgumentError(option, f"is not a time: {text!r}; {_EXAMPLES}") from None
    if at.tzinfo is None:
        raise ArgumentError(option, f"needs a time zone, got {text!r}; {_EXAMPLES}")
    if at.year not in _YEARS:
        raise ArgumentError(option, f"must be between {_YEARS[0]} and {_YEARS[-1]}, got {text!r}; {_EXAMPLES}")
    return Moment(at.astimezone(UTC))

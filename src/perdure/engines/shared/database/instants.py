"""Times as whole microseconds since 1970, in UTC: what SQLite keeps, and the starts of rates on both engines.

A stored time that cannot be read again would break every list that contains it.
"""

from __future__ import annotations

from datetime import MINYEAR, UTC, datetime, timedelta
from functools import lru_cache
from typing import Final

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST: Final = datetime.min.replace(tzinfo=UTC)
_LAST: Final = datetime.max.replace(tzinfo=UTC)
_BEGINNING_OF_TIME: Final = (_FIRST - _EPOCH) // timedelta(microseconds=1)
END_OF_TIME: Final = (_LAST - _EPOCH) // timedelta(microseconds=1)


def on_calendar(moment: datetime) -> datetime:
    """The same point in time; where it has no date in UTC, as on the last evening of a western zone, the nearest."""
    try:
        moment.astimezone(UTC)
    except OverflowError:
        return _FIRST if moment.year == MINYEAR else _LAST
    return moment


def to_micros(moment: datetime) -> int:
    """A point in time as microseconds; one beyond either end of the calendar is that end."""
    return min(max(span(moment - _EPOCH), _BEGINNING_OF_TIME), END_OF_TIME)


@lru_cache(maxsize=1024)
def from_micros(micros: int) -> datetime:
    """Microseconds as a point in time; jobs of one batch share theirs, so the last ones are remembered."""
    return _EPOCH + timedelta(microseconds=micros)


def maybe_moment(micros: int | None) -> datetime | None:
    """As `from_micros`, for a column that may be empty."""
    return None if micros is None else from_micros(micros)


def maybe_micros(moment: datetime | None) -> int | None:
    """As `to_micros`, for a column that may be empty."""
    return None if moment is None else to_micros(moment)


def span(length: timedelta) -> int:
    """A length of time as microseconds."""
    return (length.days * 86_400 + length.seconds) * 1_000_000 + length.microseconds


def after(now: int, wait: timedelta) -> int:
    """The instant a wait ends; one beyond the end of the calendar ends there."""
    return min(now + span(wait), END_OF_TIME)

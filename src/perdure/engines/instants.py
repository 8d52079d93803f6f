"""Times as whole microseconds since 1970, in UTC: what SQLite keeps, and the starts of rates on both engines."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Final

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
END_OF_TIME: Final = (datetime.max.replace(tzinfo=UTC) - _EPOCH) // timedelta(microseconds=1)


def to_micros(moment: datetime) -> int:
    """A point in time as microseconds."""
    return span(moment - _EPOCH)


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

"""Times in forms: a span before or after now, or a date."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Final

from perdure.domain.duration import parse_duration
from perdure.errors import ArgumentError

_AHEAD: Final = re.compile(r"\+?([0-9.]+ ?[a-z]+)")
_SPAN: Final = re.compile(r"-?([0-9.]+ ?[a-z]+)")


def read_moment(field: str, text: str, now: datetime) -> datetime | None:
    """The past time: `7d` is seven days ago, `2026-01-31T09:00` is UTC; None for an empty field."""
    if not (given := text.strip()):
        return None
    if given == "now":
        return now
    found = _SPAN.fullmatch(given)
    return _moved(field, found[1], now, -1) if found else _date(field, given)


def read_future(field: str, text: str, now: datetime) -> datetime | None:
    """The future time: `2h` and `+2h` are two hours from now; None for an empty field."""
    if not (given := text.strip()):
        return None
    found = _AHEAD.fullmatch(given)
    return _moved(field, found[1], now, 1) if found else _date(field, given)


def _moved(field: str, span: str, now: datetime, sign: int) -> datetime:
    try:
        return now + sign * parse_duration(field, span)
    except (ValueError, OverflowError):
        raise _unreadable(field, span) from None


def _date(field: str, text: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise _unreadable(field, text) from None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _unreadable(field: str, text: str) -> ArgumentError:
    return ArgumentError(
        field, f"is not a time: {text[:60]!r}; write a span such as 2h or 7d, or a time such as 2026-01-31T09:00Z"
    )

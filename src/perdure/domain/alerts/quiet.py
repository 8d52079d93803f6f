"""Quiet hours: when a rule holds its notices back, by the clock of a time zone."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, time, timedelta
from typing import Final
from zoneinfo import ZoneInfo

from msgspec import Struct

from perdure.errors import ArgumentError

DAYS: Final = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_FORM: Final = re.compile(
    r"(?P<start>\d{1,2}:\d{2})\s*-\s*(?P<end>\d{1,2}:\d{2})(?:\s+(?P<days>[a-z]{3}(?:[-,][a-z]{3})*))?(?:\s+(?P<zone>\S+))?"
)
_EXAMPLE: Final = 'write it as "22:00-07:00 Europe/Berlin" or "00:00-24:00 sat,sun UTC"'
_MIDNIGHT_MINUTES: Final = 24 * 60
_DAY: Final = timedelta(days=1)


class QuietHours(Struct, frozen=True, kw_only=True):
    """From `start` up to `end`, in minutes of the day, on the days on which they begin; `end` may be the next morning.

    `days` are numbers from 0, Monday; none means every day.
    """

    start: int
    end: int
    zone: str = "UTC"
    days: tuple[int, ...] = ()

    def __str__(self) -> str:
        days = ",".join(_stretches(self.days))
        return " ".join(part for part in (f"{_clock(self.start)}-{_clock(self.end)}", days, self.zone) if part)

    def until(self, now: datetime) -> datetime | None:
        """When the current quiet hours end; None: it is not quiet."""
        zone = ZoneInfo(self.zone)
        today = now.astimezone(zone).date()
        for day in (today - _DAY, today):
            if self.days and day.weekday() not in self.days:
                continue
            start = _moment(day, self.start, zone)
            end = _moment(day, self.end if self.end > self.start else self.end + _MIDNIGHT_MINUTES, zone)
            if start <= now < end:
                return end
        return None


def read_quiet(field: str, text: object) -> QuietHours:
    """Parse quiet hours: `22:00-07:00 mon-fri Europe/Berlin`."""
    if isinstance(text, QuietHours):
        return text
    found = _FORM.fullmatch(text.strip()) if isinstance(text, str) else None
    if found is None:
        raise ArgumentError(field, f"cannot be read: {text!r:.60}; {_EXAMPLE}")
    start, end = _minutes(field, found["start"]), _minutes(field, found["end"])
    if start in {end, _MIDNIGHT_MINUTES}:
        raise ArgumentError(field, f"would never begin or never end: {text!r:.60}; {_EXAMPLE}")
    zone = found["zone"] or "UTC"
    try:
        ZoneInfo(zone)
    except (KeyError, ValueError, OSError):
        raise ArgumentError(field, f"names a time zone that is not known: {zone!r:.60}; {_EXAMPLE}") from None
    return QuietHours(start=start, end=end, zone=zone, days=_days(field, found["days"] or ""))


def quiet_until(hours: tuple[QuietHours, ...], now: datetime) -> datetime | None:
    """When the current quiet hours, and those that follow them directly, are over; None: it is not quiet."""
    until: datetime | None = None
    for _ in range(len(hours) * 8):  # adjacent hours count as one span
        ends = [end for each in hours if (end := each.until(until or now)) is not None]
        if not ends:
            break
        until = max(ends)
    return until


def _minutes(field: str, text: str) -> int:
    hours, minutes = (int(part) for part in text.split(":"))
    if hours > 24 or minutes > 59 or hours * 60 + minutes > _MIDNIGHT_MINUTES:  # noqa: PLR2004 - a clock
        raise ArgumentError(field, f"has no time of day: {text!r}; {_EXAMPLE}")
    return hours * 60 + minutes


def _days(field: str, text: str) -> tuple[int, ...]:
    found: set[int] = set()
    for piece in filter(None, text.split(",")):
        first, _, last = piece.partition("-")
        for name in (first, last or first):
            if name not in DAYS:
                raise ArgumentError(field, f"has no day of the week: {name!r}; days are {', '.join(DAYS)}")
        start, end = DAYS.index(first), DAYS.index(last or first)
        found |= {day % 7 for day in range(start, (end if end >= start else end + 7) + 1)}
    return tuple(sorted(found)) if len(found) < len(DAYS) else ()


def _stretches(days: tuple[int, ...]) -> list[str]:
    """Days of the week, those that follow each other as a stretch: mon-fri."""
    found: list[list[int]] = []
    for day in days:
        if found and day == found[-1][-1] + 1:
            found[-1].append(day)
        else:
            found.append([day])
    return [DAYS[one[0]] if len(one) == 1 else f"{DAYS[one[0]]}-{DAYS[one[-1]]}" for one in found]


def _clock(minutes: int) -> str:
    return f"{minutes // 60:02}:{minutes % 60:02}"


def _moment(day: date, minutes: int, zone: ZoneInfo) -> datetime:
    """A time of day on the wall, as an instant: one that is skipped or repeated by the clock change is the first."""
    over, left = divmod(minutes, _MIDNIGHT_MINUTES)
    wall = datetime.combine(day + over * _DAY, time(left // 60, left % 60), zone)
    return wall.astimezone(UTC)

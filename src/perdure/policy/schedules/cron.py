"""Cron expressions: which wall-clock times they name. `timetable` handles zones and daylight saving.

Five fields (minute, hour, day, month, weekday), or six with the second first. A field is ``*``, a value, a range, or
either with a step, or a list of these: ``*/5``, ``10-40/7``, ``5/15``, ``MON-FRI``, ``1,15``. A range may wrap
(``22-2``, ``FRI-MON``). Sunday is 0 and 7. The day may be ``L``, the last of the month; a weekday ``MON#2``, the second
Monday, or ``FRIL``, the last Friday. ``?`` is ``*`` in the day fields.

As in Vixie's cron a day must match both day fields if either begins with ``*``; if neither does, one is enough.
"""

from __future__ import annotations

import re
from calendar import isleap
from collections.abc import Iterable
from datetime import MAXYEAR, MINYEAR, date, datetime
from functools import lru_cache
from itertools import product
from typing import Final

from msgspec import Struct

from perdure.errors import ArgumentError

EXAMPLE: Final = 'write for example "*/15 8-18 * * MON-FRI", "0 2 * * *", "@daily" or "@every 90s"'
NICKNAMES: Final = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_TEXT_LIMIT_CHARACTERS: Final = 1_000
_YEARS_SEARCHED: Final = (
    40  # years: from one 29 February on a given weekday to the next, across a century without leap day
)
_NONE: Final = -1
_AFTER, _BEFORE = 0, 1
_STEPS: Final = (1, -1)
_FIVE, _SIX = 5, 6
_DAYS_PER_MONTH: Final = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_FEBRUARY: Final = 2
_DAYS_PER_WEEK: Final = 7
_PIECE: Final = re.compile(r"([*?]|[0-9]+|[A-Z]+)(?:-([0-9]+|[A-Z]+))?(?:/([0-9]+))?")
_NTH: Final = re.compile(r"([0-9]+|[A-Z]+)#([0-9]+)")
_LAST: Final = re.compile(r"([0-9]+|[A-Z]{3})L")
_WEEKS_PER_MONTH: Final = 5
_MONTHS: Final = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
_WEEKDAYS: Final = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")


class _Field(Struct, frozen=True):
    name: str
    low: int
    high: int
    names: tuple[str, ...] = ()


_SECOND: Final = _Field("second", 0, 59)
_MINUTE: Final = _Field("minute", 0, 59)
_HOUR: Final = _Field("hour", 0, 23)
_DAY: Final = _Field("day", 1, 31)
_MONTH: Final = _Field("month", 1, 12, _MONTHS)
_WEEKDAY: Final = _Field("weekday", 0, 6, _WEEKDAYS)


class _WrongError(ValueError):
    """What is wrong with a field, or with the fields together."""


class _Wheel(Struct, frozen=True):
    """The values of one field, with tables of the nearest one at or after and at or before each position.

    Where there is none they hold -1, and they end with a -1 one position beyond the field: that entry also answers for
    the position before 0, because Python's index -1 is the last.
    """

    near: tuple[tuple[int, ...], tuple[int, ...]]
    edge: tuple[int, int]  # the first value and the last
    count: int


class Cron:
    """The wall-clock times, to the second, that an expression names."""

    __slots__ = ("_days", "_hours", "_minutes", "_months", "_seconds", "every_hour")

    def __init__(self, expression: str) -> None:
        try:
            self._read(expression)
        except _WrongError as wrong:
            raise ArgumentError("expression", f"{_cut(expression, 60)!r}: {_cut(str(wrong), 200)}; {EXAMPLE}") from None

    def at_or_after(self, wall: datetime) -> datetime | None:
        """The first time at or after this one; None: there is none before the calendar ends."""
        return self._seek(wall, _AFTER)

    def at_or_before(self, wall: datetime) -> datetime | None:
        """The last time at or before this one; None: there is none since the calendar began."""
        return self._seek(wall, _BEFORE)

    def _read(self, expression: str) -> None:
        second, minute, hour, day, month, weekday = _fields(expression)
        self._seconds = _wheel_of(_SECOND, second)
        self._minutes = _wheel_of(_MINUTE, minute)
        self._hours = _wheel_of(_HOUR, hour)
        self._months = _wheel_of(_MONTH, month)
        self._days = _days_of(day, weekday)
        self.every_hour = self._hours.count == _HOUR.high + 1
        if not self._can_be():
            raise _WrongError(f"can never be: no day is day {day}, month {month}, weekday {weekday}")

    def _can_be(self) -> bool:
        months = [month for month in range(1, 13) if self._months.near[_AFTER][month] == month]
        lengths = {
            length
            for month in months
            for length in (_DAYS_PER_MONTH[month - 1], _DAYS_PER_MONTH[month - 1] + (month == _FEBRUARY))
        }
        return any(self._days.wheel(first, length).count for first, length in product(range(_DAYS_PER_WEEK), lengths))

    def _seek(self, wall: datetime, way: int) -> datetime | None:
        step = _STEPS[way]
        year, month = wall.year, wall.month
        months = self._months.near[way]
        if months[month] == month:
            days = self._wheel(year, month).near[way]
            if days[wall.day] == wall.day:
                time = self._time(wall, way)
                if time is not None:
                    return wall.replace(hour=time[0], minute=time[1], second=time[2], microsecond=0)
            day = days[wall.day + step]
        else:
            day = _NONE
        while day == _NONE:
            month = months[month + step]
            if month == _NONE:
                month = self._months.edge[way]
                year += step
                if abs(year - wall.year) > _YEARS_SEARCHED or not MINYEAR <= year <= MAXYEAR:
                    return None
            day = self._wheel(year, month).edge[way]
        return datetime(year, month, day, self._hours.edge[way], self._minutes.edge[way], self._seconds.edge[way])  # noqa: DTZ001 - wall-clock time is of no zone

    def _time(self, wall: datetime, way: int) -> tuple[int, int, int] | None:
        """The nearest time of the same day."""
        step = _STEPS[way]
        hours, minutes = self._hours.near[way], self._minutes.near[way]
        hour, minute = wall.hour, wall.minute
        if hours[hour] == hour:
            if minutes[minute] == minute:
                second = self._seconds.near[way][wall.second]
                if second != _NONE:
                    return hour, minute, second
            minute = minutes[minute + step]
            if minute != _NONE:
                return hour, minute, self._seconds.edge[way]
        hour = hours[hour + step]
        return None if hour == _NONE else (hour, self._minutes.edge[way], self._seconds.edge[way])

    def _wheel(self, year: int, month: int) -> _Wheel:
        leap = month == _FEBRUARY and isleap(year)
        return self._days.wheel(date(year, month, 1).isoweekday() % _DAYS_PER_WEEK, _DAYS_PER_MONTH[month - 1] + leap)


def fields_of(expression: str) -> tuple[str, str, str, str, str, str]:
    """The fields of a readable expression as upper-case text, the second first; raises ArgumentError."""
    Cron(expression)
    return _fields(expression)


def _fields(expression: str) -> tuple[str, str, str, str, str, str]:
    if len(expression) > _TEXT_LIMIT_CHARACTERS:
        raise _WrongError(f"is longer than {_TEXT_LIMIT_CHARACTERS:,} characters")
    text = expression.strip().upper()
    if text.startswith("@"):
        text = text.lower()
        if text not in NICKNAMES:
            raise _WrongError(f"there is no such nickname; there are {', '.join(NICKNAMES)} and @every")
        text = NICKNAMES[text]
    fields = text.split()
    if len(fields) not in {_FIVE, _SIX}:
        raise _WrongError(
            f"has {len(fields)} field{'s' * (len(fields) != 1)}, and needs five (minute hour day month weekday)"
            " or six (the second first)"
        )
    second, minute, hour, day, month, weekday = fields if len(fields) == _SIX else ("0", *fields)
    return second, minute, hour, day, month, weekday


class _Days:
    """The days that the two day fields name together."""

    def __init__(self, day: str, weekday: str) -> None:
        days = day.split(",")
        self._last = "L" in days
        self._days = {value for piece in days if piece != "L" for value in _values(_DAY, piece)}
        self._weekdays: set[int] = set()
        self._nth: set[tuple[int, int]] = set()
        self._last_of: set[int] = set()
        for piece in weekday.split(","):
            if found := _NTH.fullmatch(piece):
                self._nth.add((_number(_WEEKDAY, found[1]) % _DAYS_PER_WEEK, _nth(found[2])))
            elif found := _LAST.fullmatch(piece):
                self._last_of.add(_number(_WEEKDAY, found[1]) % _DAYS_PER_WEEK)
            else:
                self._weekdays.update(_values(_WEEKDAY, piece))
        self._both = day[0] in "*?" or weekday[0] in "*?"
        self._wheels: dict[tuple[int, int], _Wheel] = {}

    def wheel(self, first: int, length: int) -> _Wheel:
        """The days of a month of this length whose first day is this weekday."""
        wheel = self._wheels.get((first, length))
        if wheel is None:
            days = [day for day in range(1, length + 1) if self._names(day, (first + day - 1) % _DAYS_PER_WEEK, length)]
            wheel = self._wheels[first, length] = _wheel(days, _DAY.high)
        return wheel

    def _names(self, day: int, weekday: int, length: int) -> bool:
        by_day = day in self._days or (self._last and day == length)
        by_weekday = (
            weekday in self._weekdays
            or (weekday, (day - 1) // _DAYS_PER_WEEK + 1) in self._nth
            or (weekday in self._last_of and day + _DAYS_PER_WEEK > length)
        )
        return (by_day and by_weekday) if self._both else (by_day or by_weekday)


@lru_cache(maxsize=4096)
def _wheel_of(field: _Field, text: str) -> _Wheel:
    """Thousands of schedules share few different fields."""
    return _wheel({value for piece in text.split(",") for value in _values(field, piece)}, field.high)


_days_of = lru_cache(maxsize=4096)(_Days)


def _wheel(values: Iterable[int], high: int) -> _Wheel:
    held = sorted(values)
    after = [next((value for value in held if value >= at), _NONE) for at in range(high + 2)]
    before = [next((value for value in reversed(held) if value <= at), _NONE) for at in range(high + 1)]
    edge = (held[0], held[-1]) if held else (_NONE, _NONE)
    return _Wheel((tuple(after), (*before, _NONE)), edge, len(held))


def _values(field: _Field, piece: str) -> list[int]:
    found = _PIECE.fullmatch(piece)
    if not found:
        raise _WrongError(f"{field.name} {piece!r} cannot be read")
    start, end, stride = found.groups()
    size = field.high - field.low + 1
    step = int(stride) if stride else 1
    if not 1 <= step <= size:
        raise _WrongError(f"{field.name} {piece} has a step out of range 1-{size}")
    if start == "?" and field not in {_DAY, _WEEKDAY}:
        raise _WrongError(f"{field.name} does not accept ?; only the two day fields do")
    if start in {"*", "?"}:
        if end:
            raise _WrongError(f"{field.name} {piece!r} cannot be read")
        return list(range(field.low, field.high + 1, step))
    first = _number(field, start)
    last = _number(field, end) if end else field.high if stride else first
    if first > field.high:  # 7, for Sunday
        first, last = field.low, last % _DAYS_PER_WEEK
    span = last - first if last >= first else (last - first) % size
    return [(first - field.low + offset) % size + field.low for offset in range(0, span + 1, step)]


def _number(field: _Field, text: str) -> int:
    if text in field.names:
        return field.names.index(text) + field.low
    high = _DAYS_PER_WEEK if field is _WEEKDAY else field.high
    if not text.isdigit():
        known = f"{field.low}-{high}" + (f" or {'-'.join(field.names[:: len(field.names) - 1])}" if field.names else "")
        raise _WrongError(f"{field.name} {text} is unknown; use {known}")
    if not field.low <= int(text) <= high:
        raise _WrongError(f"{field.name} {text} is out of range {field.low}-{high}")
    return int(text)


def _nth(text: str) -> int:
    if not 1 <= int(text) <= _WEEKS_PER_MONTH:
        raise _WrongError(f"weekday #{text} is out of range #1-#{_WEEKS_PER_MONTH}")
    return int(text)


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[:most]}…"

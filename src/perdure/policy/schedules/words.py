"""Schedules in plain words: `0 2 * * *` in Europe/Berlin is "every day at 02:00, Berlin time"."""

from __future__ import annotations

import re
from itertools import product
from typing import Final

from perdure.domain.duration import format_duration, parse_duration
from perdure.errors import ArgumentError
from perdure.policy.schedules.cron import fields_of

_EVERY: Final = "@every"
_ANY: Final = frozenset({"*", "?"})
_TIMES_NAMED: Final = 4  # times of a day that are named one by one
_DAYS: Final = {
    **dict(zip(("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"), range(7), strict=True)),
    **{str(number): number % 7 for number in range(8)},
}
_DAY_NAMES: Final = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
_MONTH_NAMES: Final = (
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
)
_MONTHS: Final = {
    **{name[:3].upper(): number for number, name in enumerate(_MONTH_NAMES)},
    **{str(number): number - 1 for number in range(1, 13)},
}
_ORDINALS: Final = {"1": "first", "2": "second", "3": "third", "4": "fourth", "5": "fifth"}
_STEP: Final = re.compile(r"\*/([0-9]+)")
_RANGE: Final = re.compile(r"([0-9]+)-([0-9]+)")
_NTH: Final = re.compile(r"([0-9A-Z]+)#([1-5])")
_UNITS: Final = {"d": 86_400, "h": 3_600, "m": 60, "s": 1}
_UNIT_NAMES: Final = {"d": "day", "h": "hour", "m": "minute", "s": "second"}


def in_words(expression: str, tz: str) -> str:
    """When a schedule fires, as a person would say it; one that cannot be read raises ArgumentError."""
    word, _, rest = expression.strip().partition(" ")
    if word.lower() == _EVERY:
        return _interval(rest.strip())
    second, minute, hour, day, month, weekday = fields_of(expression)
    time, names_times = _time(second, minute, hour)
    days = _day(day, weekday)
    if not days and names_times and month in _ANY:
        days = "every day"
    named = [_ranged(piece, _MONTHS, _MONTH_NAMES) for piece in month.split(",")]
    months = "" if month in _ANY else f"in {_listed(named)}"
    first = [days, time] if names_times else [time, days]
    return f"{' '.join(part for part in (*first, months) if part)}, {_zone(tz)}"


def _interval(text: str) -> str:
    seconds = parse_duration("expression", text).total_seconds()
    for unit, length in _UNITS.items():
        if seconds >= length and seconds % length == 0:
            return _every(int(seconds // length), _UNIT_NAMES[unit])
    return f"every {format_duration(parse_duration('expression', text))}"


def _zone(tz: str) -> str:
    return f"{tz.rpartition('/')[2].replace('_', ' ')} time" if "/" in tz else tz


def _every(number: int, unit: str) -> str:
    return f"every {unit}" if number == 1 else f"every {number} {unit}s"


def _time(second: str, minute: str, hour: str) -> tuple[str, bool]:
    """When on a day, and whether that names times, as in "at 02:00"."""
    if second != "0":
        return _time_with_seconds(second, minute, hour)
    minutes, hours = minute.split(","), hour.split(",")
    if all(map(str.isdigit, [*minutes, *hours])) and len(minutes) * len(hours) <= _TIMES_NAMED:
        times = [f"{int(one):02}:{int(other):02}" for one, other in product(hours, minutes)]
        return f"at {_listed(sorted(times))}", True
    return _hourly(minutes, hour) or _minutely(minute, hour), False


def _hourly(minutes: list[str], hour: str) -> str:
    """Some minutes of many hours; empty: it is more than that."""
    if not all(map(str.isdigit, minutes)):
        return ""
    past = "" if minutes == ["0"] else f" at {_listed([f':{int(one):02}' for one in minutes])}"
    if hour == "*":
        return f"every hour{past}"
    if even := _even(hour, 24):
        return f"{_every(even, 'hour')}{past}"
    found = _RANGE.fullmatch(hour)
    return f"every hour from {int(found[1]):02}:00 to {int(found[2]):02}:00" if found and not past else ""


def _minutely(minute: str, hour: str) -> str:
    """Many minutes of some hours."""
    often = "every minute" if minute == "*" else _minutes(minute)
    if often and hour == "*":
        return often
    if often and (found := _RANGE.fullmatch(hour)):
        return f"{often} from {int(found[1]):02}:00 to {int(found[2]):02}:59"
    hours_said = "every hour" if hour == "*" else f"hour {_piece(hour)}"
    return f"{often or f'at minute {_piece(minute)}'} of {hours_said}"


def _time_with_seconds(second: str, minute: str, hour: str) -> tuple[str, bool]:
    if all(map(str.isdigit, (second, minute, hour))):
        return f"at {int(hour):02}:{int(minute):02}:{int(second):02}", True
    often = "every second" if second == "*" else _every(even, "second") if (even := _even(second, 60)) else ""
    if minute == hour == "*":
        return often or f"every minute at second {_piece(second)}", False
    rest, _ = _time("0", minute, hour)
    return f"{often or f'at second {_piece(second)}'}, {rest}", False


def _minutes(minute: str) -> str:
    if even := _even(minute, 60):
        return _every(even, "minute")
    found = _STEP.fullmatch(minute)
    return f"every {found[1]} minutes of each hour" if found else ""


def _even(field: str, whole: int) -> int | None:
    """The step of a field that divides its circle evenly."""
    found = _STEP.fullmatch(field)
    return int(found[1]) if found and whole % int(found[1]) == 0 else None


def _day(day: str, weekday: str) -> str:
    by_day = "" if day in _ANY else f"on {_listed([_month_day(piece) for piece in day.split(',')])} of the month"
    by_weekday = "" if weekday in _ANY else f"on {_listed([_weekday(piece) for piece in weekday.split(',')])}"
    if by_day and by_weekday:
        both = day[0] in _ANY or weekday[0] in _ANY
        return f"{by_day} {'if that is' if both else 'and also'} {by_weekday}"
    return by_day or by_weekday


def _month_day(piece: str) -> str:
    return "the last day" if piece == "L" else f"day {_piece(piece)}"


def _weekday(piece: str) -> str:
    if found := _NTH.fullmatch(piece):
        return f"the {_ORDINALS[found[2]]} {_DAY_NAMES[_DAYS[found[1]]]}"
    if piece.endswith("L") and piece[:-1] in _DAYS:
        return f"the last {_DAY_NAMES[_DAYS[piece[:-1]]]}"
    return _ranged(piece, _DAYS, _DAY_NAMES)


def _ranged(piece: str, numbers: dict[str, int], names: tuple[str, ...]) -> str:
    """A day or month, or from one to another, by name."""
    start, dash, end = piece.partition("-")
    if start not in numbers or (dash and end not in numbers):
        return _piece(piece)
    return f"{names[numbers[start]]} to {names[numbers[end]]}" if dash else names[numbers[start]]


def _piece(field: str) -> str:
    """Part of an expression that has no plainer words."""
    return _listed([each.replace("-", " to ", 1).replace("/", ", every ", 1) for each in field.split(",")])


def _listed(words: list[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def words_or_expression(expression: str, tz: str) -> str:
    """The plain words, or the expression itself where it cannot be read."""
    try:
        return in_words(expression, tz)
    except ArgumentError:
        return expression

"""Which wall-clock times an expression names, and what is refused."""

from __future__ import annotations

from calendar import isleap, monthrange
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from itertools import pairwise

import pytest

from perdure.errors import ArgumentError
from perdure.policy.schedules.cron import NICKNAMES, Cron

SECOND = timedelta(seconds=1)


def wall(year: int, month: int, day: int) -> datetime:
    return datetime(year, month, day)  # noqa: DTZ001 - wall-clock time is of no zone


YEAR = wall(2028, 1, 1), wall(2029, 1, 1)  # a leap year


def forwards(cron: Cron, start: datetime, end: datetime) -> Iterator[datetime]:
    time = cron.at_or_after(start)
    while time is not None and time < end:
        yield time
        time = cron.at_or_after(time + SECOND)


def backwards(cron: Cron, start: datetime, end: datetime) -> Iterator[datetime]:
    time = cron.at_or_before(end - SECOND)
    while time is not None and time >= start:
        yield time
        time = cron.at_or_before(time - SECOND)


def weekday(time: datetime) -> int:
    return time.isoweekday() % 7  # Sunday is 0


def is_last(time: datetime) -> bool:
    return time.day == monthrange(time.year, time.month)[1]


def is_last_week(time: datetime) -> bool:
    return (time + timedelta(days=7)).month != time.month


@pytest.mark.parametrize(
    ("field", "hours"),
    [
        ("*", range(24)),
        ("*/7", [0, 7, 14, 21]),
        ("5/8", [5, 13, 21]),
        ("8-18/5", [8, 13, 18]),
        ("22-2", [22, 23, 0, 1, 2]),
        ("22-4/3", [22, 1, 4]),
        ("3,1,3-5", [1, 3, 4, 5]),
        ("*/24", [0]),
        ("7-7", [7]),
        ("0-23", range(24)),
    ],
)
def test_lists_ranges_and_steps(field: str, hours: list[int]) -> None:
    day = YEAR[0], YEAR[0] + timedelta(days=1)
    assert [time.hour for time in forwards(Cron(f"0 {field} * * *"), *day)] == sorted(hours)


@pytest.mark.parametrize(
    ("field", "days"),
    [
        ("MON", {1}),
        ("fri-mon", {5, 6, 0, 1}),
        ("0", {0}),
        ("7", {0}),
        ("5-7", {5, 6, 0}),
        ("7-2", {0, 1, 2}),
        ("7-7", {0}),
        ("0-7", set(range(7))),
        ("Sun,WED", {0, 3}),
        ("1-5/2", {1, 3, 5}),
        ("*/2", {0, 2, 4, 6}),
        ("?", set(range(7))),
    ],
)
def test_weekdays(field: str, days: set[int]) -> None:
    week = YEAR[0], YEAR[0] + timedelta(days=7)
    assert {weekday(time) for time in forwards(Cron(f"0 12 ? * {field}"), *week)} == days


@pytest.mark.parametrize(
    ("days", "names"),
    [
        ("L * *", is_last),
        ("1,L * *", lambda time: time.day == 1 or is_last(time)),
        ("29 2 *", lambda time: time.month == 2 and time.day == 29),
        ("28-3 * *", lambda time: time.day >= 28 or time.day <= 3),
        ("1 NOV-feb *", lambda time: time.month in {11, 12, 1, 2} and time.day == 1),
        ("* * MON#2", lambda time: weekday(time) == 1 and 8 <= time.day <= 14),
        ("* * 7#5", lambda time: weekday(time) == 0 and time.day >= 29),
        ("* * 5L", lambda time: weekday(time) == 5 and is_last_week(time)),
        ("* * SUNL,WED", lambda time: weekday(time) == 3 or (weekday(time) == 0 and is_last_week(time))),
        ("13 * FRI", lambda time: time.day == 13 or weekday(time) == 5),
        ("1-7 * */7", lambda time: time.day <= 7 and weekday(time) == 0),
        ("*/2 * MON", lambda time: time.day % 2 == 1 and weekday(time) == 1),
        ("1-31 * MON", lambda _: True),
        ("L 6 TUE#1", lambda time: time.month == 6 and (is_last(time) or (weekday(time) == 2 and time.day <= 7))),
        ("30 2 MON", lambda time: time.month == 2 and weekday(time) == 1),
        ("? * ?", lambda _: True),
    ],
)
def test_days_of_a_year_as_a_calendar_has_them(days: str, names: Callable[[datetime], bool]) -> None:
    """Compared with every day of the year, forwards and backwards."""
    cron = Cron(f"30 6 {days}")
    mornings = [YEAR[0] + timedelta(days=day, hours=6, minutes=30) for day in range(366)]
    expected = [time for time in mornings if names(time)]
    assert expected
    assert list(forwards(cron, *YEAR)) == expected
    assert list(backwards(cron, *YEAR)) == expected[::-1]


def test_six_fields_begin_with_the_second() -> None:
    start = YEAR[0].replace(hour=23, minute=59, second=1)
    assert [time.second for time in forwards(Cron("*/20 59 23 * * *"), start, YEAR[1])][:2] == [20, 40]
    assert Cron("0 59 23 * * *").at_or_after(start) == start.replace(day=2, second=0)
    assert Cron("59 23 * * *").at_or_before(start) == start.replace(second=0)


@pytest.mark.parametrize(
    ("nickname", "count"),
    [
        ("@yearly", 1),
        ("@annually", 1),
        ("@monthly", 12),
        ("@Weekly", 53),
        ("@daily", 366),
        (" @MIDNIGHT ", 366),
        ("@hourly", 366 * 24),
    ],
)
def test_nicknames(nickname: str, count: int) -> None:
    assert nickname.strip().lower() in NICKNAMES
    assert sum(1 for _ in forwards(Cron(nickname), *YEAR)) == count


@pytest.mark.parametrize(
    ("expression", "wanted"), [("0 0 29 2 */7", 0), *((f"0 0 * 2 {wanted}#5", wanted) for wanted in range(7))]
)
def test_a_leap_day_on_a_given_weekday_is_found_however_far_it_is(expression: str, wanted: int) -> None:
    """Three centuries of four end without one, so that it can be forty years away."""
    leap_years = [year for year in range(2000, 2400, 4) if isleap(year)]
    expected = [day for day in (wall(year, 2, 29) for year in leap_years) if weekday(day) == wanted]
    assert max(later.year - sooner.year for sooner, later in pairwise(expected)) == 40
    assert list(forwards(Cron(expression), wall(2000, 1, 1), wall(2400, 1, 1))) == expected
    assert list(backwards(Cron(expression), wall(2000, 1, 1), wall(2400, 1, 1))) == expected[::-1]


def test_the_calendar_ends() -> None:
    assert Cron("0 0 1 1 *").at_or_after(wall(9999, 6, 1)) is None
    assert Cron("0 0 1 6 *").at_or_before(wall(1, 5, 1)) is None


@pytest.mark.parametrize(
    ("expression", "problem"),
    [
        ("", "has 0 fields, and needs five"),
        ("banana", "has 1 field, and needs five"),
        ("* * * *", "has 4 fields"),
        ("0 0 12 * * ? 2026", "has 7 fields"),
        ("61 * * * *", "minute 61 is out of range 0-59"),
        ("60 * * * * *", "second 60 is out of range 0-59"),
        ("* 24 * * *", "hour 24 is out of range 0-23"),
        ("* * 0 * *", "day 0 is out of range 1-31"),
        ("* * 32 * *", "day 32 is out of range 1-31"),
        ("* * * 13 *", "month 13 is out of range 1-12"),
        ("* * * * 8", "weekday 8 is out of range 0-7"),
        ("1-99 * * * *", "minute 99 is out of range 0-59"),
        ("*/0 * * * *", "minute */0 has a step out of range 1-60"),
        ("*/90 * * * *", "minute */90 has a step out of range 1-60"),
        ("* */25 * * *", "hour */25 has a step out of range 1-24"),
        ("*-5 * * * *", "minute '*-5' cannot be read"),
        ("1,,2 * * * *", "minute '' cannot be read"),
        ("-1 * * * *", "minute '-1' cannot be read"),
        ("1.5 * * * *", "minute '1.5' cannot be read"),
        ("\u0663 * * * *", "minute '\u0663' cannot be read"),
        ("? * * * *", "minute does not accept"),
        ("MON * * * *", "minute MON is unknown; use 0-59"),
        ("* * * MAI *", "month MAI is unknown; use 1-12 or JAN-DEC"),
        ("* * * * MO", "weekday MO is unknown; use 0-7 or SUN-SAT"),
        ("* * * * L", "weekday L is unknown"),
        ("* * * * MON#6", "weekday #6 is out of range #1-#5"),
        ("* * * * MON#0", "weekday #0 is out of range #1-#5"),
        ("* * * * MON-FRI#2", "weekday 'MON-FRI#2' cannot be read"),
        ("* * 15W * *", "day '15W' cannot be read"),
        ("* * L-3 * *", "day L is unknown"),
        ("* * 5L * *", "day '5L' cannot be read"),
        ("0 0 30 2 *", "can never be: no day is day 30, month 2, weekday *"),
        ("0 0 31 4,6,9,NOV *", "can never be: no day is day 31"),
        ("0 0 31 APR */2", "can never be"),
        ("@reboot", "there is no such nickname; there are @yearly"),
        ("@", "there is no such nickname"),
        ("9" * 900 + " * * * *", "minute 9999"),
        ("0 0 30" + ",31" * 200 + " 2 *", "can never be"),
        ("1" * 2000, "is longer than 1,000 characters"),
        ("\x1b[2J * * * *", "minute '\\x1b[2J' cannot be read"),
    ],
)
def test_what_cannot_be_read_is_refused_with_its_field_and_an_example(expression: str, problem: str) -> None:
    with pytest.raises(ArgumentError) as refused:
        Cron(expression)
    assert refused.value.field == "expression"
    assert problem in str(refused.value)
    assert 'write for example "*/15 8-18 * * MON-FRI"' in str(refused.value)
    assert len(str(refused.value)) < 500
    assert "\x1b" not in str(refused.value)

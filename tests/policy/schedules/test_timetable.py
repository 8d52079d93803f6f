"""G6: wall-clock time and its gaps and repetitions, against a clock that is watched minute by minute.

The oracle knows nothing of offsets. It looks at the clock on the wall at every minute of UTC: a time that it names has
come when the clock shows it, or something later, for the first time. For expressions of every hour it has come whenever
the clock shows it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from functools import cache
from itertools import pairwise
from random import Random
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.support.chance import seeded

from perdure.errors import ArgumentError
from perdure.policy.schedules import timetable as module
from perdure.policy.schedules.timetable import Timetable, timetable

SECOND, MINUTE, HOUR, DAY = timedelta(seconds=1), timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
START, END = datetime(2026, 1, 1, tzinfo=UTC), datetime(2028, 1, 1, tzinfo=UTC)
LEAD = 26 * HOUR  # longer than any repetition

Names = Callable[[datetime], bool]

NAMED: dict[str, Names] = {
    "30 2 * * *": lambda wall: wall.hour == 2 and wall.minute == 30,
    "0 0 * * *": lambda wall: wall.hour == 0 and wall.minute == 0,
    "15 1-3 * * *": lambda wall: wall.hour in {1, 2, 3} and wall.minute == 15,
    "*/20 22-4 * * *": lambda wall: wall.hour in {22, 23, 0, 1, 2, 3, 4} and wall.minute % 20 == 0,
    "0 */2 * * *": lambda wall: wall.hour % 2 == 0 and wall.minute == 0,
    "* 2 * * *": lambda wall: wall.hour == 2,
    "45 23,0 L * *": lambda wall: wall.hour in {23, 0} and wall.minute == 45 and (wall + DAY).day == 1,
    "30 0-3 1,15 * SUN": lambda wall: (
        wall.hour <= 3 and wall.minute == 30 and (wall.day in {1, 15} or wall.weekday() == 6)
    ),
}
EVERY_HOUR: dict[str, Names] = {
    "*/5 * * * *": lambda wall: wall.minute % 5 == 0,
    "0 * * * *": lambda wall: wall.minute == 0,
    "17,50 0-23 * * *": lambda wall: wall.minute in {17, 50},
    "10/25 * * * SAT": lambda wall: wall.minute in {10, 35} and wall.weekday() == 5,
}
SECONDS: dict[str, Names] = {
    "*/17 59,0 0-3,23 * * *": lambda wall: (
        wall.hour in {0, 1, 2, 3, 23} and wall.minute in {59, 0} and wall.second % 17 == 0
    ),
}
SECONDS_OF_EVERY_HOUR: dict[str, Names] = {
    "59,1 59,0 * * * *": lambda wall: wall.minute in {59, 0} and wall.second in {59, 1},
}


def oracle(
    zone: ZoneInfo,
    start: datetime,
    end: datetime,
    named: dict[str, Names],
    every_hour: dict[str, Names],
    step: timedelta,
) -> dict[str, list[datetime]]:
    """When each expression is due from `start` up to, but without, `end`."""
    due: dict[str, list[datetime]] = {expression: [] for expression in (*named, *every_hour)}
    instant = start - LEAD
    latest = instant.astimezone(zone).replace(tzinfo=None)
    while (instant := instant + step) < end:
        shown = instant.astimezone(zone).replace(tzinfo=None, fold=0)
        new = []
        while latest < shown:
            latest += step
            new.append(latest)
        if instant < start:
            continue
        for expression, names in named.items():
            if any(map(names, new)):
                due[expression].append(instant)
        for expression, names in every_hour.items():
            if names(shown):
                due[expression].append(instant)
    return due


def agrees(
    tz: str,
    start: datetime,
    end: datetime,
    named: dict[str, Names] = NAMED,
    every_hour: dict[str, Names] = EVERY_HOUR,
    step: timedelta = MINUTE,
) -> None:
    for expression, due in oracle(ZoneInfo(tz), start, end, named, every_hour, step).items():
        times = timetable(expression, tz)
        assert list(times.between(start, end)) == due, (tz, expression)
        assert list(backwards(times, start, end)) == due[::-1], (tz, expression)


def backwards(times: Timetable, start: datetime, end: datetime) -> Iterator[datetime]:
    time = times.last_before(end)
    while time is not None and time >= start:
        yield time
        sooner = times.last_before(time)
        assert sooner is None or sooner < time
        time = sooner


def changes(zone: ZoneInfo, start: datetime = START, end: datetime = END) -> list[tuple[datetime, timedelta | None]]:
    """The offset at first, and the minutes at which it changes, with the new one."""
    found = [(start, start.astimezone(zone).utcoffset())]
    samples = [start + n * 6 * HOUR for n in range((end - start) // (6 * HOUR) + 1)]
    for sooner, later in pairwise(samples):
        offset = later.astimezone(zone).utcoffset()
        if offset != found[-1][1]:
            minute = next(m for n in range(361) if (m := sooner + n * MINUTE).astimezone(zone).utcoffset() == offset)
            found.append((minute, offset))
    return found


@cache
def rule_sets() -> dict[str, list[datetime]]:
    """One zone of each set of rules that differs from all others in these two years, and the times of its changes."""
    rules = {tuple(changes(ZoneInfo(tz))): tz for tz in sorted(available_timezones() - {"localtime"})}
    return {tz: [at for at, _ in rule[1:]] for rule, tz in rules.items()}


def test_g6_every_zone_agrees_with_the_clock_on_the_wall_around_its_changes_and_on_some_other_days() -> None:
    random: Random = seeded(6)
    checked = 0
    for tz, at in rule_sets().items():
        for change in (*at, START + random.randrange(700) * DAY):
            agrees(tz, change - 12 * HOUR - random.randrange(90) * MINUTE, change + 12 * HOUR)
            checked += 1
    assert checked > 100


def test_g6_every_second_around_changes_agrees_too() -> None:
    for tz in ("Europe/Berlin", "Australia/Lord_Howe", "America/Santiago"):
        for at, _ in changes(ZoneInfo(tz))[1:3]:
            agrees(tz, at - 2 * HOUR, at + 2 * HOUR, SECONDS, SECONDS_OF_EVERY_HOUR, SECOND)


@pytest.mark.parametrize(
    ("tz", "around"),
    [
        ("Pacific/Apia", "2011-12-30"),  # a day that was not
        ("Pacific/Kwajalein", "1993-08-21"),  # another
        ("Australia/Lord_Howe", "2026-04-04"),  # half an hour comes twice
        ("Australia/Lord_Howe", "2026-10-03"),  # half an hour is skipped
        ("Antarctica/Troll", "2026-03-29"),  # two hours are skipped
        ("Antarctica/Troll", "2026-10-25"),  # two hours come twice
        ("America/Santiago", "2026-09-06"),  # no midnight
        ("America/Santiago", "2026-04-05"),  # the last hour of a day comes twice
        ("Africa/Cairo", "2026-04-24"),  # no midnight
        ("Asia/Beirut", "2026-03-29"),  # no midnight
        ("America/Havana", "2026-11-01"),  # midnight comes twice
        ("America/Caracas", "2007-12-09"),  # back by half an hour, for good
        ("America/Caracas", "2016-05-01"),  # and forth again
        ("Asia/Pyongyang", "2018-05-04"),
        ("Antarctica/Casey", "2020-10-03"),  # three hours forth, and back at midnight
        ("Africa/Casablanca", "2026-02-15"),  # back for Ramadan
        ("Europe/Dublin", "2026-10-25"),  # winter is the exception
        ("America/Toronto", "2040-03-11"),  # beyond the tables, by rule alone
    ],
)
def test_g6_odd_changes_agree_with_the_clock_on_the_wall(tz: str, around: str) -> None:
    day = datetime.fromisoformat(around).replace(tzinfo=UTC)
    assert len(changes(ZoneInfo(tz), day - 2 * DAY, day + 2 * DAY)) > 1
    agrees(tz, day - 2 * DAY, day + 2 * DAY)


@pytest.mark.proof
@pytest.mark.parametrize("part", range(8))
def test_g6_two_years_of_every_zone_agree_with_the_clock_on_the_wall(part: int) -> None:
    zones = sorted(rule_sets())[part::8]
    assert zones
    for tz in zones:
        for start in (START + n * 73 * DAY for n in range(10)):
            agrees(tz, start, start + 73 * DAY)


@pytest.mark.proof
@pytest.mark.parametrize("part", range(8))
def test_g6_every_second_around_every_change_agrees(part: int) -> None:
    moments = [(tz, at) for tz, changed in sorted(rule_sets().items()) for at in changed][part::8]
    assert moments
    for tz, at in moments:
        agrees(tz, at - 3 * HOUR, at + 3 * HOUR, SECONDS, SECONDS_OF_EVERY_HOUR, SECOND)


def local(expression: str, start: str, end: str, tz: str = "Europe/Berlin") -> list[str]:
    zone = ZoneInfo(tz)
    first, last = (datetime.fromisoformat(text).replace(tzinfo=zone).astimezone(UTC) for text in (start, end))
    return [f"{time.astimezone(zone):%d %H:%M %z}" for time in timetable(expression, tz).between(first, last)]


def test_g6_a_skipped_time_fires_once_after_the_gap() -> None:
    days = "2026-03-28T12:00", "2026-03-30T12:00"
    assert local("30 2 * * *", *days) == ["29 03:00 +0200", "30 02:30 +0200"]
    assert local("*/20 2 29 * *", *days) == ["29 03:00 +0200"]
    assert local("0 2,3 29 * *", *days) == ["29 03:00 +0200"]
    assert local("0 8 30 12 *", "2011-12-29", "2012-01-01", "Pacific/Apia") == ["31 00:00 +1400"]


def test_g6_a_repeated_time_fires_once_at_its_first_instant() -> None:
    days = "2026-10-24T12:00", "2026-10-26T12:00"
    assert local("30 2 * * *", *days) == ["25 02:30 +0200", "26 02:30 +0100"]
    assert local("0 2,3 25 * *", *days) == ["25 02:00 +0200", "25 03:00 +0100"]


def test_g6_an_expression_of_every_hour_goes_by_elapsed_time() -> None:
    twice = local("*/30 * * * *", "2026-10-25T01:30", "2026-10-25T03:30")
    assert twice == [
        "25 01:30 +0200",
        "25 02:00 +0200",
        "25 02:30 +0200",
        "25 02:00 +0100",
        "25 02:30 +0100",
        "25 03:00 +0100",
    ]
    assert local("0 * * * *", "2026-03-29T01:00", "2026-03-29T04:30") == [
        "29 01:00 +0100",
        "29 03:00 +0200",
        "29 04:00 +0200",
    ]
    assert local("*/5 * * * *", "2026-03-29T01:55", "2026-03-29T03:10") == [
        "29 01:55 +0100",
        "29 03:00 +0200",
        "29 03:05 +0200",
    ]


def test_b11_a_time_on_an_exact_minute_is_neither_before_nor_after_itself() -> None:
    times = timetable("*/5 * * * *", "Europe/Berlin")
    noon = datetime(2026, 5, 5, 12, 0, tzinfo=UTC)
    tick = timedelta(microseconds=1)
    assert times.next_after(noon - tick) == times.last_before(noon + tick) == noon
    assert times.next_after(noon) == times.next_after(noon + tick) == noon + 5 * MINUTE
    assert times.last_before(noon) == times.last_before(noon - tick) == noon - 5 * MINUTE
    assert list(times.between(noon, noon + 10 * MINUTE)) == [noon, noon + 5 * MINUTE]


def test_intervals_count_from_the_epoch_and_do_not_drift() -> None:
    times = timetable("@every 90s", "Mars/Olympus")  # the zone does not matter
    late = datetime(2026, 5, 5, 12, 0, 7, tzinfo=UTC)
    assert times.next_after(late) == datetime(2026, 5, 5, 12, 1, 30, tzinfo=UTC)
    assert times.last_before(late) == datetime(2026, 5, 5, 12, 0, tzinfo=UTC)
    assert times.last_before(datetime(2026, 5, 5, 12, 0, tzinfo=UTC)) == datetime(2026, 5, 5, 11, 58, 30, tzinfo=UTC)
    assert len(list(timetable("@EVERY\t1h30m", "UTC").between(START, START + DAY))) == 16


def test_what_was_read_is_kept() -> None:
    assert timetable("*/5 * * * *", "UTC") is timetable("*/5 * * * *", "UTC")


ZONES = st.sampled_from(sorted(available_timezones() - {"localtime"}))
INSTANTS = st.datetimes(
    min_value=START.replace(year=1972, tzinfo=None),
    max_value=START.replace(year=2100, tzinfo=None),
    timezones=st.just(UTC),
)


@st.composite
def fields(draw: st.DrawFn, low: int, high: int) -> str:
    value = st.integers(low, high)
    pieces = st.one_of(
        st.just("*"),
        value.map(str),
        st.tuples(value, value).map(lambda ends: f"{ends[0]}-{ends[1]}"),
        st.integers(1, high).map(lambda step: f"*/{step}"),
        st.tuples(value, st.integers(1, high)).map(lambda given: f"{given[0]}/{given[1]}"),
    )
    return ",".join(draw(st.lists(pieces, min_size=1, max_size=3)))


CRONS = st.tuples(fields(0, 59), fields(0, 59), fields(0, 23), fields(1, 28), fields(1, 12), fields(0, 6)).map(" ".join)
EXPRESSIONS = st.one_of(CRONS, st.integers(1, 10**6).map(lambda seconds: f"@every {seconds}s"))


@settings(deadline=None)
@given(EXPRESSIONS, ZONES, INSTANTS)
@example("30 0 2 * * *", "Europe/Berlin", datetime(2026, 3, 29, 1, tzinfo=UTC))
@example("30 0 2 * * *", "Europe/Berlin", datetime(2026, 10, 25, 1, tzinfo=UTC))
def test_next_and_last_are_each_others_inverse(expression: str, tz: str, instant: datetime) -> None:
    times = timetable(expression, tz)
    later, sooner = times.next_after(instant), times.last_before(instant)
    assert later is not None
    assert sooner is not None
    assert sooner < instant < later
    assert later.tzinfo is sooner.tzinfo is UTC
    between = times.last_before(later)
    assert between in {sooner, instant}
    assert times.next_after(between) == later
    assert times.last_before(times.next_after(sooner) or instant) == sooner


@settings(deadline=None)
@given(EXPRESSIONS, ZONES, INSTANTS, st.timedeltas(min_value=timedelta(0), max_value=timedelta(days=400)))
def test_later_instants_have_later_times(expression: str, tz: str, instant: datetime, on: timedelta) -> None:
    times = timetable(expression, tz)
    later, later_still = times.next_after(instant), times.next_after(instant + on)
    sooner, less_soon = times.last_before(instant), times.last_before(instant + on)
    assert later is not None
    assert later_still is not None
    assert later <= later_still
    assert sooner is not None
    assert less_soon is not None
    assert sooner <= less_soon


@settings(deadline=None)
@given(EXPRESSIONS, ZONES, INSTANTS, st.timedeltas(min_value=timedelta(0), max_value=timedelta(minutes=20)))
def test_between_is_next_after_next(expression: str, tz: str, start: datetime, length: timedelta) -> None:
    times = timetable(expression, tz)
    found = list(times.between(start, start + length))
    assert all(start <= time < start + length for time in found)
    assert all(times.next_after(sooner) == later for sooner, later in pairwise(found))
    beyond = times.next_after(found[-1] if found else start - timedelta(microseconds=1))
    assert beyond is not None
    assert beyond >= start + length
    assert found == list(backwards(times, start, start + length))[::-1]


def test_the_calendar_ends_without_an_error() -> None:
    for expression in ("0 0 1 1 *", "*/5 * * * *", "@every 500d"):
        for tz in ("UTC", "Asia/Tokyo", "America/New_York"):
            assert timetable(expression, tz).next_after(datetime.max.replace(tzinfo=UTC)) is None
            assert timetable(expression, tz).last_before(datetime.min.replace(tzinfo=UTC)) is None


@pytest.mark.parametrize(
    ("expression", "tz", "field", "problem"),
    [
        ("61 * * * *", "UTC", "expression", "minute 61 is out of range 0-59"),
        ("0 0 30 2 *", "UTC", "expression", "can never be"),
        (None, "UTC", "expression", "must be text, got NoneType"),
        (["* * * * *"], "UTC", "expression", "must be text, got list"),
        ("@every", "UTC", "expression", "is not a duration"),
        ("@every soon", "UTC", "expression", "is not a duration: 'soon'"),
        ("@every 999ms", "UTC", "expression", '"@every 999ms" is shorter than 1s'),
        ("@every 0", "UTC", "expression", "is shorter than 1s"),
        ("@everyday", "UTC", "expression", "there is no such nickname"),
        ("@daily", "Europe/Berln", "tz", "did you mean Europe/Berlin"),
        ("@daily", "europe/berlin", "tz", "did you mean Europe/Berlin"),
        ("@daily", "Mars/Olympus", "tz", 'write for example "Europe/Berlin"'),
        ("@daily", "", "tz", 'write for example "Europe/Berlin"'),
        ("@daily", "Europe", "tz", "is no time zone"),
        ("@daily", "../../etc/passwd", "tz", "is no time zone"),
        ("@daily", "/etc/localtime", "tz", "is no time zone"),
        ("@daily", "zone.tab", "tz", "is no time zone"),
        ("@daily", "x\x00y", "tz", "is no time zone"),
        ("@daily", "\udcff", "tz", "is no time zone"),
        ("@daily", "x" * 10_000, "tz", "is no time zone"),
        ("@daily", "localtime", "tz", "differs between machines"),
        ("@daily", None, "tz", "must be text, got NoneType"),
    ],
)
def test_bad_input_is_refused_by_name(expression: str, tz: str, field: str, problem: str) -> None:
    with pytest.raises(ArgumentError) as refused:
        timetable(expression, tz)
    assert refused.value.field == field
    assert problem in str(refused.value)
    assert len(str(refused.value)) < 500


@pytest.mark.parametrize("expression", ["@daily", "@hourly", "@every 5m"])
def test_an_instant_without_a_zone_is_refused(expression: str) -> None:
    naive = START.replace(tzinfo=None)
    for ask in (timetable(expression, "UTC").next_after, timetable(expression, "UTC").last_before):
        with pytest.raises(ArgumentError, match="instant has no zone"):
            ask(naive)


def test_a_machine_without_zones_says_what_to_install_and_knows_utc(monkeypatch: pytest.MonkeyPatch) -> None:
    def nowhere(key: str) -> ZoneInfo:
        raise ZoneInfoNotFoundError(key)

    monkeypatch.setattr(module, "ZoneInfo", nowhere)
    monkeypatch.setattr(module, "available_timezones", set)
    with pytest.raises(ArgumentError, match="no time zone data: pip install tzdata"):
        timetable("59 23 * * *", "Europe/Paris")
    assert timetable("58 23 * * *", "UTC").next_after(START) == START + 23 * HOUR + 58 * MINUTE

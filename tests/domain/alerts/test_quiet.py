"""Quiet hours follow the clock on the wall of their zone, over midnight and over the change of clocks."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from perdure.domain.alerts.quiet import quiet_until, read_quiet
from perdure.errors import ArgumentError


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("hours", "now", "until"),
    [
        ("22:00-07:00 UTC", "2026-01-01T23:00", "2026-01-02T07:00"),
        ("22:00-07:00 UTC", "2026-01-01T06:59", "2026-01-01T07:00"),
        ("22:00-07:00 UTC", "2026-01-01T07:00", None),
        ("22:00-07:00 Europe/Berlin", "2026-01-01T21:00", "2026-01-02T06:00"),
        ("22:00-07:00 Europe/Berlin", "2026-07-01T20:00", "2026-07-02T05:00"),
        ("01:00-04:00 Europe/Berlin", "2026-03-29T00:30", "2026-03-29T02:00"),  # the clock goes forward: two hours
        ("00:00-24:00 sat,sun UTC", "2026-01-03T12:00", "2026-01-04T00:00"),
        ("00:00-24:00 sat,sun UTC", "2026-01-05T12:00", None),
        ("22:00-07:00 fri UTC", "2026-01-03T06:00", "2026-01-03T07:00"),  # began on Friday
        ("22:00-07:00 fri UTC", "2026-01-04T06:00", None),
    ],
)
def test_when_it_is_quiet(hours: str, now: str, until: str | None) -> None:
    assert read_quiet("quiet", hours).until(at(now)) == (None if until is None else at(until))


def test_hours_that_meet_are_one_stretch() -> None:
    hours = tuple(read_quiet("quiet", text) for text in ("22:00-24:00", "00:00-07:00", "00:00-24:00 sat"))
    assert quiet_until(hours, at("2026-01-02T23:00")) == at("2026-01-04T07:00"), "from Friday night to Sunday morning"


@pytest.mark.parametrize("text", ["22:00-07:00 mon-fri Europe/Berlin", "00:00-24:00 sat,sun UTC", "1:00-2:30"])
def test_what_is_written_back_is_read_again(text: str) -> None:
    hours = read_quiet("quiet", text)
    assert read_quiet("quiet", str(hours)) == hours


def test_days_that_follow_each_other_are_written_as_one_stretch() -> None:
    assert str(read_quiet("quiet", "22:00-07:00 mon,tue,wed,fri UTC")) == "22:00-07:00 mon-wed,fri UTC"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("22-7", "cannot be read"),
        ("25:00-07:00", "has no time of day: '25:00'"),
        ("22:00-22:00", "would never begin or never end"),
        ("22:00-07:00 Europe/Berln", "time zone that is not known: 'Europe/Berln'"),
        ("22:00-07:00 mon-fry UTC", "has no day of the week: 'fry'"),
        (7, "cannot be read"),
    ],
)
def test_what_cannot_be_meant_is_refused_with_an_example(text: object, said: str) -> None:
    with pytest.raises(ArgumentError, match=said) as refused:
        read_quiet("quiet", text)
    assert refused.value.field == "quiet"

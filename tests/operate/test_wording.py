"""Lists, counts and spans in sentences."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from perdure.operate.wording import listed, roughly, rounded, some, utc_text


def test_a_long_list_says_how_many_are_not_named() -> None:
    assert listed("abcde") == "a, b, c, d, e"
    assert listed("abcdefg") == "a, b, c, d, e and 2 more"
    assert listed("abc", joint="; ", most=2) == "a; b and 1 more"
    assert listed([]) == ""


def test_counts_agree_with_their_noun() -> None:
    assert [some(count, "job") for count in (0, 1, 2, 1_200)] == ["0 jobs", "1 job", "2 jobs", "1,200 jobs"]


def test_a_time_is_reported_in_utc() -> None:
    at = datetime(2026, 3, 1, 13, 0, 0, 900_000, tzinfo=timezone(timedelta(hours=1)))
    assert utc_text(at) == utc_text(at.astimezone(UTC)) == "2026-03-01 12:00:00Z"


@pytest.mark.parametrize(
    ("seconds", "told"),
    [
        (-5, "0s"),
        (0.4, "0s"),
        (59.6, "1m"),
        (61, "1m1s"),
        (599, "9m59s"),
        (601, "10m"),
        (3_661, "1h1m"),
        (90_061, "1d1h"),
        (86_400 * 40, "40d"),
    ],
)
def test_a_span_is_reported_in_its_two_largest_units(seconds: float, told: str) -> None:
    assert roughly(timedelta(seconds=seconds)) == told


def test_an_exact_span_is_reported_to_the_second() -> None:
    assert rounded(timedelta(seconds=3_661.6)) == "1h1m2s"

"""Times as people read and write them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from perdure.errors import ArgumentError
from perdure.surfaces.cli.terminal.times import absolute, both, read_time, relative, rough, took

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("span", "text"),
    [
        (timedelta(0), "now"),
        (timedelta(milliseconds=400), "now"),
        (timedelta(milliseconds=600), "1s ago"),
        (timedelta(seconds=59.6), "1m ago"),
        (timedelta(seconds=90), "1m30s ago"),
        (timedelta(minutes=5), "5m ago"),
        (timedelta(hours=26), "1d2h ago"),
        (timedelta(days=400), "400d ago"),
        (-timedelta(minutes=2), "in 2m"),
    ],
)
def test_distances_are_reported_in_two_units(span: timedelta, text: str) -> None:
    assert relative(NOW - span, NOW) == text


def test_absolute_times_are_utc_in_every_zone() -> None:
    berlin = timezone(timedelta(hours=1))
    assert absolute(datetime(2026, 3, 1, 13, 0, tzinfo=berlin)) == "2026-03-01 12:00:00Z"
    assert both(NOW, NOW + timedelta(hours=1)) == "2026-03-01 12:00:00Z  (1h ago)"


@pytest.mark.parametrize(
    ("span", "text"),
    [(0.0042, "4ms"), (1.26, "1.3s"), (61, "1m1s"), (0, "0ms")],
)
def test_what_was_quick_is_reported_exactly(span: float, text: str) -> None:
    assert took(timedelta(seconds=span)) == text


def test_a_rough_span_is_never_nothing() -> None:
    assert rough(timedelta(0)) == "1s"


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("now", NOW),
        ("+2h", NOW + timedelta(hours=2)),
        ("-7d", NOW - timedelta(days=7)),
        (" +90 ", NOW + timedelta(seconds=90)),
        ("2026-03-01T09:00Z", datetime(2026, 3, 1, 9, 0, tzinfo=UTC)),
        ("2026-03-01 09:00:30+01:00", datetime(2026, 3, 1, 8, 0, 30, tzinfo=UTC)),
    ],
)
def test_a_time_is_read_with_its_zone_or_counted_from_now(text: str, at: datetime) -> None:
    assert read_time("--at", text).when(NOW) == at


@pytest.mark.parametrize(
    "text",
    [
        "",
        "noon",
        "2h",
        "+",
        "+2x",
        "--2h",
        "2026-03-01",
        "2026-03-01T09:00",
        "0001-01-01T00:00Z",
        "9999-12-31T23:59-05:00",
    ],
)
def test_what_is_no_time_is_refused_by_name_with_an_example(text: str) -> None:
    with pytest.raises(ArgumentError, match=r"^--at .*write") as caught:
        read_time("--at", text)
    assert caught.value.field == "--at"

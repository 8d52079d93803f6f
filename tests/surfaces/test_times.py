"""Times as people read them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from perdure.surfaces.cli.times import absolute, both, relative, rough, took

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
def test_distances_are_told_in_two_units(span: timedelta, text: str) -> None:
    assert relative(NOW - span, NOW) == text


def test_absolute_times_are_utc_whatever_the_zone() -> None:
    berlin = timezone(timedelta(hours=1))
    assert absolute(datetime(2026, 3, 1, 13, 0, tzinfo=berlin)) == "2026-03-01 12:00:00Z"
    assert both(NOW, NOW + timedelta(hours=1)) == "2026-03-01 12:00:00Z  (1h ago)"


@pytest.mark.parametrize(
    ("span", "text"),
    [(0.0042, "4ms"), (1.26, "1.3s"), (61, "1m1s"), (0, "0ms")],
)
def test_what_was_quick_is_told_exactly(span: float, text: str) -> None:
    assert took(timedelta(seconds=span)) == text


def test_a_rough_span_is_never_nothing() -> None:
    assert rough(timedelta(0)) == "1s"

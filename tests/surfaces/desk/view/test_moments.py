"""Times that people type into forms."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from perdure.errors import ArgumentError
from perdure.surfaces.desk.view.moments import read_future, read_moment

NOON = datetime(2026, 3, 4, 12, tzinfo=UTC)


def test_a_span_is_before_now_in_a_filter_and_after_now_in_a_command() -> None:
    for text in ("7d", "-7d", " 7 d "):
        assert read_moment("since", text, NOON) == NOON - timedelta(days=7)
    for text in ("2h", "+2h"):
        assert read_future("until", text, NOON) == NOON + timedelta(hours=2)
    assert read_moment("since", "now", NOON) == NOON


def test_a_date_without_a_zone_is_utc_and_an_empty_field_is_none() -> None:
    for read in (read_moment, read_future):
        assert read("at", "2026-01-31T09:00", NOON) == datetime(2026, 1, 31, 9, tzinfo=UTC)
        assert read("at", "2026-01-31T09:00+01:00", NOON) == datetime(2026, 1, 31, 8, tzinfo=UTC)
        assert read("at", "  ", NOON) is None


@pytest.mark.parametrize("text", ["soon", "7 fortnights", "99999999d", "2026-13-01", "+-2h", "1.2.3h"])
def test_text_that_is_no_time_is_refused_with_its_field_and_an_example(text: str) -> None:
    for read in (read_moment, read_future):
        with pytest.raises(ArgumentError, match=r"^until is not a time: .*write a span such as 2h or 7d"):
            read("until", text, NOON)


def test_a_command_takes_no_time_before_now_by_a_sign() -> None:
    with pytest.raises(ArgumentError, match="is not a time: '-2h'"):
        read_future("until", "-2h", NOON)

"""A window of a budget consists of whole minutes, hours and days, and of what lies before the first of them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from perdure.engines.shared.database.instants import END_OF_TIME, span
from perdure.engines.shared.gates.spend_spans import SPANS, borders

MINUTE, HOUR, DAY = map(span, SPANS)


@given(st.integers(-DAY, 4 * 10**15))
def test_each_part_ends_where_the_next_can_begin(since: int) -> None:
    minutes, hours, days = borders(since)
    assert since < minutes <= hours <= days
    assert (minutes % MINUTE, hours % HOUR, days % DAY) == (0, 0, 0)
    assert (minutes - since <= MINUTE, hours - minutes < HOUR, days - hours < DAY) == (True, True, True)


def test_a_minute_that_begins_with_the_window_is_cut_by_it() -> None:
    """What was spent at that very instant has left it."""
    assert borders(DAY) == [DAY + MINUTE, DAY + HOUR, 2 * DAY]
    assert borders(DAY - 1) == [DAY, DAY, DAY]


def test_a_window_at_the_end_of_the_calendar_has_no_parts_beyond_it() -> None:
    assert borders(END_OF_TIME) == [END_OF_TIME] * 3

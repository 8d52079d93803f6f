"""The spans of time over which spending is summed, and those that make up a window.

A window begins at any microsecond and has no end: spends with a later time, because the clock was set back, count as
well. It is read spend by spend up to the first full minute; then by minutes up to the first full hour, by hours up to
the first full day, and by days from there on. That is about a hundred rows, however many spends there are.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from perdure.engines.shared.database.instants import END_OF_TIME, span

MINUTE: Final = timedelta(minutes=1)
HOUR: Final = timedelta(hours=1)
DAY: Final = timedelta(days=1)
SPANS: Final = (MINUTE, HOUR, DAY)
"""Each is a multiple of the one before. They begin at 1970, in UTC."""


def borders(since: int) -> list[int]:
    """Where reading by minutes, hours and days begins after an instant, in microseconds."""
    found, border = [], since + 1
    for length in map(span, SPANS):
        border = min(-(-border // length) * length, END_OF_TIME)
        found.append(border)
    return found

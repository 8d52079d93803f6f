"""Into which stretches of time the spending of budgets is summed, and which of them make up a window.

A window begins at any microsecond and has no end: what carries a later time, because the clock was put back, counts as
well. It is read as what was spent up to the first full minute, one by one; then as minutes up to the first full hour,
as hours up to the first full day, and as days from there on. That is about a hundred rows, however many spends there
are.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from perdure.engines.shared.database.instants import END_OF_TIME, span

SPANS: Final = (timedelta(minutes=1), timedelta(hours=1), timedelta(days=1))
"""Each is a multiple of the one before. They begin at 1970, in UTC."""


def borders(since: int) -> list[int]:
    """From where on minutes, hours and days are read of what lies after an instant, in microseconds."""
    found, border = [], since + 1
    for length in map(span, SPANS):
        border = min(-(-border // length) * length, END_OF_TIME)
        found.append(border)
    return found

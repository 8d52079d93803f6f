"""Figures as the screen shows them: short enough for a column, and never misleading."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Final

from perdure.surfaces.cli.terminal.times import took

NOTHING: Final = "\u2013"  # where there is no figure
_BARS: Final = "▁▂▃▄▅▆▇█"
_THOUSAND: Final = 1_000
_MILLION: Final = 1_000_000
_EXACT_BELOW: Final = 10_000
_TENTHS_BELOW: Final = 10


def count(number: int, *, capped: bool = False) -> str:
    """A number of things: exact up to 9,999, then `12 k`, `1.2 M`; a plus sign means: at least this many."""
    plus = "+" if capped else ""
    if number < _EXACT_BELOW:
        return f"{number:,}{plus}"
    if number < _MILLION:
        return f"{number / _THOUSAND:.0f} k{plus}"
    return f"{number / _MILLION:.1f} M{plus}"


def rate(number: int, seconds: float) -> str:
    """A count within a span as a rate per second, or per minute if that is easier to read."""
    if not seconds or not number:
        return "0 /s"
    per_second = number / seconds
    if per_second >= _TENTHS_BELOW:
        return f"{per_second:,.0f} /s"
    if per_second >= 1:
        return f"{per_second:.1f} /s"
    return f"{per_second * 60:.1f} /min"


def share(part: float | None) -> str:
    """A share in per cent; a dash if there is none."""
    if part is None:
        return NOTHING
    return f"{part:.1%}" if 0 < part < 1 / _TENTHS_BELOW else f"{part:.0%}"


def seconds(value: float | None) -> str:
    """A span in seconds, formatted for people; a dash if it is unknown."""
    return NOTHING if value is None else took(timedelta(seconds=value))


def sparkline(values: Sequence[float], width: int) -> str:
    """All values in at most `width` bars of one character, the highest one full; neighbouring values are added up."""
    bars = min(width, len(values))
    shown = [sum(values[len(values) * bar // bars : len(values) * (bar + 1) // bars]) for bar in range(bars)]
    top = max(shown, default=0)
    if not top:
        return _BARS[0] * len(shown)
    return "".join(_BARS[min(int(value / top * len(_BARS)), len(_BARS) - 1)] if value else _BARS[0] for value in shown)

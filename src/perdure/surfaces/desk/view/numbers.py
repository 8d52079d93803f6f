"""Numbers and spans rounded for reading; the exact value goes into a tooltip."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from markupsafe import Markup

NOTHING: Final = "\u2013"
_EXACT_UP_TO: Final = 10_000
_SCALES: Final = ((1e3, "k"), (1e6, "M"), (1e9, "G"), (1e12, "T"))
_TEN: Final = 10
_HUNDRED: Final = 100
_READS_AS_THOUSAND: Final = 999.5
_READS_AS_TEN: Final = 9.95
_READS_AS_MINUTE_SECONDS: Final = 59.5
_READS_AS_SECOND_SECONDS: Final = 0.9995
_MINUTE_SECONDS: Final = 60.0
_HOUR_SECONDS: Final = 3_600.0
_DAY_SECONDS: Final = 86_400.0
_UNITS: Final = (
    (_DAY_SECONDS, "d", _HOUR_SECONDS, "h"),
    (_HOUR_SECONDS, "h", _MINUTE_SECONDS, "m"),
    (_MINUTE_SECONDS, "m", 1.0, "s"),
)


def short_number(value: float | None) -> str:
    """`418`, `1,204`, `31 k`, `1.2 M`."""
    if value is None:
        return NOTHING
    if abs(value) < _EXACT_UP_TO:
        return f"{value:,}" if isinstance(value, int) else _digits(value)
    scale, letter = next((each for each in _SCALES if abs(value) / each[0] < _READS_AS_THOUSAND), _SCALES[-1])
    return f"{_digits(value / scale)} {letter}"


def number(value: float | None, *, capped: bool = False) -> Markup:
    """A number for reading, with the exact one in its tooltip if they differ; `capped`: at least this many."""
    shown = short_number(value) + ("+" if capped else "")
    exact = NOTHING if value is None else f"{value:,}"
    if capped:
        return Markup('<span title="at least {}">{}</span>').format(exact, shown)
    return Markup("{}").format(shown) if exact == shown else Markup('<span title="{}">{}</span>').format(exact, shown)


def amount(value: float) -> str:
    """Money or another amount without a known unit: `8.1`, `1,204.5`, `0.0032`."""
    return f"{value:,.4g}" if abs(value) < 1 else f"{value:,.2f}".rstrip("0").rstrip(".")


def rate(count: float, seconds: float) -> str:
    """A rate per second, or per minute or hour if that reads better: `824 /s`, `3.2 /min`, `2 /h`."""
    if not count or seconds <= 0:
        return "0 /s"
    each_second = count / seconds
    if each_second >= 1:
        return f"{short_number(_few_digits(each_second))} /s"
    if each_second * _MINUTE_SECONDS >= 1:
        return f"{_digits(each_second * _MINUTE_SECONDS)} /min"
    return f"{_digits(each_second * _HOUR_SECONDS)} /h"


def share(part: float | None) -> str:
    """A share as a percentage: `1.9 %`, `31 %`, `< 0.1 %`."""
    if part is None:
        return NOTHING
    percent = part * _HUNDRED
    if 0 < percent < 0.1:  # noqa: PLR2004 - what one digit can show
        return "< 0.1 %"
    return f"{_digits(percent)} %"


def short_span(span: timedelta | float | None) -> str:
    """A span for reading, two units at most: `64 ms`, `2.1 s`, `25 m`, `3 h 20 m`, `2 d 4 h`."""
    if span is None:
        return NOTHING
    seconds = span.total_seconds() if isinstance(span, timedelta) else float(span)
    if seconds < 0:
        return f"-{short_span(-seconds)}"
    if seconds < _READS_AS_MINUTE_SECONDS:
        return _short_seconds(seconds)
    seconds = max(seconds, _MINUTE_SECONDS)
    length, unit, smaller, name = next(units for units in _UNITS if seconds >= units[0])
    many, rest = int(seconds // length), int(seconds % length // smaller)
    return f"{many} {unit} {rest} {name}" if rest and many < _TEN else f"{many} {unit}"


def _short_seconds(seconds: float) -> str:
    if seconds < 0.001:  # noqa: PLR2004 - one millisecond
        return "< 1 ms" if seconds else "0 s"
    return f"{seconds * 1_000:.0f} ms" if seconds < _READS_AS_SECOND_SECONDS else f"{_digits(seconds)} s"


def span(value: timedelta | float | None) -> Markup:
    """A span for reading, with the exact seconds in its tooltip."""
    if value is None:
        return Markup("{}").format(NOTHING)
    seconds = value.total_seconds() if isinstance(value, timedelta) else float(value)
    return Markup('<span title="{:,.3f} s">{}</span>').format(seconds, short_span(seconds))


def size(count: int) -> str:
    """A number of bytes: `412 B`, `16 KB`, `1.2 MB`."""
    if count < 1_000:  # noqa: PLR2004 - one kilobyte
        return f"{count} B"
    kilobytes = count / 1_000
    return f"{_digits(kilobytes)} KB" if kilobytes < _READS_AS_THOUSAND else f"{_digits(kilobytes / 1_000)} MB"


def _digits(value: float) -> str:
    """Two significant digits for small numbers: 0.41, 1.2, 31."""
    if abs(value) >= _READS_AS_TEN or value == int(value):
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 1 else f"{value:.2g}"


def _few_digits(value: float) -> float:
    return round(value) if value >= _TEN else round(value, 1)

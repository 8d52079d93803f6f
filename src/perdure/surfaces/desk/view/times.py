"""Times: the server writes UTC, the script converts them to the viewer's zone, with UTC in the tooltip.

Without the script a page still shows the time, marked as UTC.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Final

from markupsafe import Markup

from perdure.domain.duration import parse_duration
from perdure.errors import ArgumentError
from perdure.surfaces.desk.view.numbers import NOTHING, short_span, span
from perdure.surfaces.desk.view.text import LINE_LIMIT_CHARACTERS, visible

_WITHOUT_DATE_WITHIN: Final = timedelta(hours=20)
_TIME: Final = r"\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:\.\d{1,6})?)?(?:Z\b| UTC\b|[+-]\d\d:\d\d\b)"
_SPAN: Final = r"(?<![^\s(])(?P<span>(?:\d{1,9}(?:\.\d{1,6})?(?:d|h|ms|us|m|s))+)(?=[,.;:)]*(?:\s|$))"
_IN_A_SENTENCE: Final = re.compile(f"{_TIME}|{_SPAN}")


def moment(at: datetime | None, now: datetime) -> Markup:
    """The time of day if it is near, else the date and time."""
    if at is None:
        return Markup("{}").format(NOTHING)
    near = abs(now - at) < _WITHOUT_DATE_WITHIN
    shown = at.astimezone(UTC).strftime("%H:%M:%S" if near else "%Y-%m-%d %H:%M")
    return _time(at, "clock" if near else "day", f"{shown} UTC")


def full(at: datetime | None) -> Markup:
    """The date and time, with seconds."""
    if at is None:
        return Markup("{}").format(NOTHING)
    return _time(at, "full", f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC")


def ago(at: datetime | None, now: datetime) -> Markup:
    """The time since, or until: `3 m ago`, `in 20 s`."""
    if at is None:
        return Markup("{}").format(NOTHING)
    gone = now - at
    if abs(gone) < timedelta(seconds=1):
        return _time(at, "none", "now")
    return _time(at, "none", f"{short_span(gone)} ago" if gone > timedelta(0) else f"in {short_span(-gone)}")


def sentence(words: str, now: datetime | None, most: int = LINE_LIMIT_CHARACTERS) -> Markup:
    """Untrusted words, as `visible` shows them.

    Times with a zone are formatted by `moment`, or by `full` if `now` is None; spans such as `1h51m`, the format of the
    terminal, by `span`.
    """
    cut = words if len(words) <= most else words[: most - 1] + "…"
    pieces: list[str] = []
    end = 0
    for found in _IN_A_SENTENCE.finditer(cut):
        shown = _span_of(found["span"]) if found["span"] else _moment_of(found[0], now)
        pieces += [visible(cut[end : found.start()]), shown]
        end = found.end()
    return Markup("").join([*pieces, visible(cut[end:])])


def _moment_of(written: str, now: datetime | None) -> Markup:
    try:
        at = datetime.fromisoformat(written.replace(" UTC", "Z"))
        return full(at) if now is None else moment(at, now)
    except (ValueError, OverflowError):
        return visible(written)


def _span_of(written: str) -> Markup:
    try:
        return span(parse_duration("span", written))
    except ArgumentError:
        return visible(written)


def _time(at: datetime, form: str, shown: str) -> Markup:
    stamp = at.astimezone(UTC)
    return Markup('<time datetime="{}" data-as="{}" title="{} UTC">{}</time>').format(
        stamp.isoformat(), form, stamp.strftime("%Y-%m-%d %H:%M:%S"), shown
    )

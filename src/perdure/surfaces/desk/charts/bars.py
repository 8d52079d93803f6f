"""Bars: counts over time in the size of a word, and a meter that shows how much is used."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from perdure.surfaces.desk.charts.svg import picture, tag, title

WIDTH, HEIGHT = 100.0, 24.0
_GAP_SHARE_OF_BAR = 0.25  # of a bar
_SMALLEST_BAR_UNITS = 1.5  # so that one of many stays visible


def bars(values: Sequence[float], *, label: str, colour: str = "dead", notes: Sequence[str] = ()) -> Markup:
    """A bar for each value, on a common baseline; `notes` explain them on hover."""
    top = max(values, default=0) or 1
    step = WIDTH / max(len(values), 1)
    drawn = []
    for at, value in enumerate(values):
        height = max(_SMALLEST_BAR_UNITS, HEIGHT * value / top) if value else 0.6
        place = {"x": at * step, "y": HEIGHT - height, "width": step * (1 - _GAP_SHARE_OF_BAR), "height": height}
        css = f"fill c-{colour}" if value else "ground"
        drawn.append(tag("rect", {"class": css, **place}, [title(notes[at])] if notes else []))
    return picture(label, WIDTH, HEIGHT, "spark", drawn, stretch=True)


def meter(used: float, of: float, *, label: str, colour: str = "running", near: float | None = None) -> Markup:
    """A meter of how much is used; it looks empty only at 0. `near`: a share that is marked, such as 0.8."""
    part = min(max(used / of, 0.0), 1.0) if of > 0 else 0.0
    ground = tag("rect", {"class": "ground", "width": WIDTH, "height": 6.0})
    fill = tag("rect", {"class": f"fill c-{colour}", "width": WIDTH * part, "height": 6.0})
    drawn = [title(label), ground, fill]
    if near is not None:
        drawn.append(tag("rect", {"class": "near", "x": WIDTH * near, "width": 0.6, "height": 6.0}))
    return picture(label, WIDTH, 6.0, "meter", drawn, stretch=True)

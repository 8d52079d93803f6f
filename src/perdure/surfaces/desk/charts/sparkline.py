"""A trend in the size of a word."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from perdure.surfaces.desk.charts.svg import Point, line_path, picture, tag

WIDTH, HEIGHT, MARGIN = 100.0, 24.0, 2.0


def sparkline(values: Sequence[float | None], *, label: str, colour: str = "running", least: float = 0.0) -> Markup:
    """A line without axes, from 0 to its largest value; a missing value interrupts it.

    `least` is the smallest value of the top, so that noise around 0 stays flat.
    """
    top = max([least, *(value for value in values if value is not None)], default=0.0) or 1.0
    step = WIDTH / max(len(values) - 1, 1)
    points: list[Point | None] = [
        None if value is None else (at * step, HEIGHT - MARGIN - (HEIGHT - 2 * MARGIN) * value / top)
        for at, value in enumerate(values)
    ]
    line = tag("path", {"class": f"line c-{colour}", "d": line_path(points)})
    return picture(label, WIDTH, HEIGHT, "spark", [line], stretch=True)

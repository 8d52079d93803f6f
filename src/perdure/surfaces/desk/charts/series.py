"""Values over time: lines and areas over a few grid lines, with a legend.

The plot stretches to its panel; labels are HTML beside it, so that they keep their size on a phone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta

from markupsafe import Markup, escape
from msgspec import Struct

from perdure.surfaces.desk.charts.scale import ceiling, parts
from perdure.surfaces.desk.charts.svg import Point, area_path, line_path, picture, short, tag
from perdure.surfaces.desk.view.text import plain

WIDTH, HEIGHT = 600.0, 150.0
_TICKS_PER_AXIS = 4
_DATES_BEYOND = timedelta(days=2)


class Line(Struct, frozen=True, kw_only=True):
    """One series. `area` fills the area under it; `faint` draws it thinner."""

    name: str
    values: Sequence[float | None]
    colour: str
    area: bool = False
    faint: bool = False


def series(
    at: Sequence[datetime],
    lines: Sequence[Line],
    *,
    heading: str,
    label: str,
    unit: Callable[[float], str],
    least: float = 1.0,
    step: timedelta = timedelta(minutes=1),
) -> Markup:
    """A panel's chart. `at` are the start times of the points, `unit` formats a value, `least` is the smallest top."""
    top = ceiling((value for line in lines for value in line.values), least)
    grid = parts(top)
    rules = [
        tag("line", {"class": "rule", "x1": 0.0, "x2": WIDTH, "y1": y, "y2": y})
        for y in (HEIGHT * part / grid for part in range(grid + 1))
    ]
    drawn = [shape for line in lines for shape in _drawn(line, top)]
    plot = picture(
        f"{label}: {_in_words(lines, unit)}",
        WIDTH,
        HEIGHT,
        "plot",
        [*rules, *drawn, _hits(at, lines, unit)],
        stretch=True,
    )
    return Markup('<figure class="chart">{}<div class="plotted">{}{}</div>{}</figure>').format(
        _head(heading, lines), plot, _levels(top, grid, unit), _ticks(at, step)
    )


def _in_words(lines: Sequence[Line], unit: Callable[[float], str]) -> str:
    """A description for screen readers: the last and the highest value of each line."""
    known = {line.name: [value for value in line.values if value is not None] for line in lines}
    parts = [f"{name} {unit(values[-1])}, at most {unit(max(values))}" for name, values in known.items() if values]
    return "; ".join(parts) or "no values"


def _head(heading: str, lines: Sequence[Line]) -> Markup:
    keys = Markup("").join(
        Markup('<li class="c-{}{}">{}</li>').format(line.colour, " faint-key" if line.faint else "", plain(line.name))
        for line in lines
    )
    return Markup(
        '<figcaption><h2>{}</h2><output class="readout"></output><ul class="legend">{}</ul></figcaption>'
    ).format(plain(heading), keys)


def _drawn(line: Line, top: float) -> list[Markup]:
    count = len(line.values)
    step = WIDTH / max(count - 1, 1)
    points: list[Point | None] = [
        None if value is None else (at * step, HEIGHT - HEIGHT * min(value / top, 1.0))
        for at, value in enumerate(line.values)
    ]
    shapes = [tag("path", {"class": f"area c-{line.colour}", "d": area_path(points, HEIGHT)})] if line.area else []
    css = f"line c-{line.colour}{' thin' if line.faint else ''}"
    return [*shapes, tag("path", {"class": css, "d": line_path(points)})]


def _hits(at: Sequence[datetime], lines: Sequence[Line], unit: Callable[[float], str]) -> Markup:
    """A column for each point that shows its values on hover.

    They are most of a page's elements, so they are formatted as plain text, and each tooltip is escaped only once.
    """
    step = WIDTH / max(len(at) - 1, 1)
    size = f'y="0" width="{short(step)}" height="{short(HEIGHT)}"'
    hits = []
    for number, moment in enumerate(at):
        values = [f"{line.name} {unit(value)}" for line in lines if (value := line.values[number]) is not None]
        said = escape(plain(" · ".join(values)))
        day, minute = moment.astimezone(UTC).isoformat(timespec="minutes")[:16].split("T")
        hits.append(
            f'<rect class="hit" x="{short(max(0.0, (number - 0.5) * step))}" {size} data-time="{day}T{minute}Z"'
            f' data-said="{said}"><title>{day} {minute} UTC: {said or "nothing"}</title></rect>'
        )
    return Markup("".join(hits))  # noqa: S704 - what was formatted in was escaped above


def _levels(top: float, grid: int, unit: Callable[[float], str]) -> Markup:
    levels = Markup("").join(Markup("<li>{}</li>").format(unit(top * part / grid)) for part in range(grid, 0, -1))
    return Markup('<ol class="levels levels-{}" aria-hidden="true">{}</ol>').format(grid, levels)


def _ticks(at: Sequence[datetime], step: timedelta) -> Markup:
    if len(at) < 2:  # noqa: PLR2004 - a line has two ends
        return Markup("")
    first, until = at[0], at[-1] + step
    form = "daytick" if until - first > _DATES_BEYOND else "tick"
    written = "%a %d" if form == "daytick" else "%H:%M"
    places = [first + (until - first) * part / _TICKS_PER_AXIS for part in range(_TICKS_PER_AXIS)]
    marks = Markup("").join(
        Markup('<li><time datetime="{}" data-as="{}">{}</time></li>').format(
            place.astimezone(UTC).isoformat(timespec="seconds"), form, place.astimezone(UTC).strftime(written)
        )
        for place in places
    )
    return Markup('<ol class="ticks" aria-hidden="true">{}<li>now</li></ol>').format(marks)

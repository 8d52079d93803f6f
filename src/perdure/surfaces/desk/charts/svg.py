"""Elements of SVG as markup: every value is escaped, numbers are short."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

from markupsafe import Markup, escape

from perdure.surfaces.desk.view.text import plain

Point = tuple[float, float]


def tag(name: str, attributes: dict[str, Any] | None = None, children: Iterable[str] = ()) -> Markup:
    """An element; attributes that are None are left out, plain text in `children` is escaped."""
    words = "".join([f' {key}="{_word(value)}"' for key, value in (attributes or {}).items() if value is not None])
    inner = Markup("").join(child if isinstance(child, Markup) else plain(child) for child in children)
    # All parts are already escaped.
    return Markup(f"<{name}{words}>{inner}</{name}>") if inner else Markup(f"<{name}{words}/>")  # noqa: S704


def picture(
    label: str,
    width: float,
    height: float,
    css: str,
    children: Iterable[str],
    *,
    stretch: bool,
    natural: bool = False,
) -> Markup:
    """The outermost element: an image with a name. `natural`: in its drawn size, else as wide as its container."""
    attributes = {
        "class": css,
        "viewBox": f"0 0 {short(width)} {short(height)}",
        "preserveAspectRatio": "none" if stretch else None,
        "width": width if natural else None,
        "height": height if natural else None,
        "role": "img",
        "aria-label": label,
        "focusable": "false",
    }
    return tag("svg", attributes, children)


def title(text: str) -> Markup:
    """The tooltip."""
    return tag("title", None, [text])


def line_path(points: Sequence[Point | None]) -> str:
    """A line through the points; a missing point interrupts it."""
    commands: list[str] = []
    pen_down = False
    for point in points:
        if point is None:
            pen_down = False
            continue
        commands.append(f"{'L' if pen_down else 'M'}{short(point[0])} {short(point[1])}")
        pen_down = True
    return "".join(commands)


def area_path(points: Sequence[Point | None], floor: float) -> str:
    """The area under the line."""
    pieces: list[str] = []
    for run in _runs(points):
        first, last = run[0][0], run[-1][0]
        pieces.append(f"{line_path(run)}L{short(last)} {short(floor)}L{short(first)} {short(floor)}Z")
    return "".join(pieces)


def _runs(points: Sequence[Point | None]) -> Iterable[list[Point]]:
    run: list[Point] = []
    for point, following in pairwise([*points, None]):
        if point is not None:
            run.append(point)
            if following is None:
                yield run
                run = []


def short(number: float) -> str:
    """A length or position with at most two decimals."""
    return f"{number:.2f}".rstrip("0").rstrip(".")


def _word(value: Any) -> str:
    if isinstance(value, float):
        return short(value)
    return escape(plain(value) if isinstance(value, str) and not isinstance(value, Markup) else str(value))

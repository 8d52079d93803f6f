"""A tree of jobs: the parent on the left, its children on the right, each a box in the colour of its state."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from markupsafe import Markup
from msgspec import Struct

from perdure.surfaces.desk.charts.svg import picture, tag, title

_BOX_UNITS: Final = (190.0, 30.0)
_STEP_UNITS: Final = (236.0, 40.0)
_LABEL_LIMIT_CHARACTERS: Final = 24


class Node(Struct, frozen=True, kw_only=True):
    """A box. `parent` is the id of its parent's box; `note` is a second, paler word in it."""

    id: str
    label: str
    colour: str = "none"
    parent: str | None = None
    url: str | None = None
    said: str = ""
    note: str = ""


def tree(nodes: Sequence[Node], *, label: str) -> Markup:
    """Draw the nodes; nodes without a parent among them are roots. Siblings keep their order."""
    if not nodes:
        return Markup("")
    places = _places(nodes)
    width = max(x for x, _ in places.values()) + _BOX_UNITS[0] + 2
    height = max(y for _, y in places.values()) + _BOX_UNITS[1] + 2
    lines = [
        _line(places[node.parent], places[node.id]) for node in nodes if node.parent in places and node.id in places
    ]
    boxes = [_box(node, places[node.id]) for node in nodes if node.id in places]
    return Markup('<div class="tree">{}</div>').format(
        picture(label, width, height, "family", [*lines, *boxes], stretch=False, natural=True)
    )


def _places(nodes: Sequence[Node]) -> dict[str | None, tuple[float, float]]:
    """Positions: leaves one below the other; a parent at the middle of its children."""
    known = {node.id for node in nodes}
    children: dict[str | None, list[Node]] = {}
    for node in nodes:
        children.setdefault(node.parent if node.parent in known and node.parent != node.id else None, []).append(node)
    places: dict[str | None, tuple[float, float]] = {}
    rows = 0
    stack = [(node, 0, False) for node in reversed(children.get(None, []))]
    while stack:
        node, depth, seen = stack.pop()
        below = children.get(node.id, [])
        if below and not seen:
            stack.append((node, depth, True))
            stack += [(child, depth + 1, False) for child in reversed(below)]
            continue
        if below:
            y = (places[below[0].id][1] + places[below[-1].id][1]) / 2
        else:
            y, rows = 1 + rows * _STEP_UNITS[1], rows + 1
        places[node.id] = (1 + depth * _STEP_UNITS[0], y)
    return places


def _line(start: tuple[float, float], end: tuple[float, float]) -> Markup:
    x1, y1 = start[0] + _BOX_UNITS[0], start[1] + _BOX_UNITS[1] / 2
    x2, y2 = end[0], end[1] + _BOX_UNITS[1] / 2
    middle = (x1 + x2) / 2
    curve = f"M{x1:.1f} {y1:.1f}C{middle:.1f} {y1:.1f} {middle:.1f} {y2:.1f} {x2:.1f} {y2:.1f}"
    return tag("path", {"class": "branch", "d": curve})


def _box(node: Node, place: tuple[float, float]) -> Markup:
    x, y = place
    cut = node.label if len(node.label) <= _LABEL_LIMIT_CHARACTERS else node.label[: _LABEL_LIMIT_CHARACTERS - 1] + "…"
    middle = y + _BOX_UNITS[1] / 2 + 4
    shapes = [
        title(node.said or node.label),
        tag("rect", {"class": "node", "x": x, "y": y, "width": _BOX_UNITS[0], "height": _BOX_UNITS[1], "rx": 7.0}),
        tag("circle", {"class": f"fill c-{node.colour}", "cx": x + 14, "cy": y + _BOX_UNITS[1] / 2, "r": 4.0}),
        tag("text", {"class": "inside", "x": x + 26, "y": middle}, [cut]),
    ]
    if node.note:
        end = {"class": "note", "x": x + _BOX_UNITS[0] - 10, "y": middle, "text-anchor": "end"}
        shapes.append(tag("text", end, [node.note]))
    group = tag("g", None, shapes)
    return group if node.url is None else tag("a", {"href": node.url}, [group])

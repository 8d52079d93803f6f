"""Many jobs at a glance: a small square for each, in the colour of its state."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from markupsafe import Markup
from msgspec import Struct

from perdure.surfaces.desk.charts.svg import picture, tag, title

_SIDE_UNITS: Final = 13.0
_STEP_UNITS: Final = 16.0
_CELLS_PER_ROW: Final = 40


class Cell(Struct, frozen=True):
    """One square. `said` is its tooltip."""

    colour: str
    url: str
    said: str


def cells(shown: Sequence[Cell], *, label: str) -> Markup:
    """The squares in rows, in order. They are links for the pointer; keyboard users have the boxes of the tree."""
    if not shown:
        return Markup("")
    rows = -(-len(shown) // _CELLS_PER_ROW)
    width = _STEP_UNITS * min(len(shown), _CELLS_PER_ROW) - (_STEP_UNITS - _SIDE_UNITS)
    drawn = [_square(cell, number) for number, cell in enumerate(shown)]
    css = "cells"
    return Markup('<div class="mosaic">{}</div>').format(
        picture(label, width, _STEP_UNITS * rows - (_STEP_UNITS - _SIDE_UNITS), css, drawn, stretch=False, natural=True)
    )


def _square(cell: Cell, number: int) -> Markup:
    row, column = divmod(number, _CELLS_PER_ROW)
    place = {"x": column * _STEP_UNITS, "y": row * _STEP_UNITS, "width": _SIDE_UNITS, "height": _SIDE_UNITS, "rx": 3.0}
    box = tag("rect", {"class": f"cell c-{cell.colour}", **place}, [title(cell.said)])
    return tag("a", {"href": cell.url, "tabindex": "-1"}, [box])

"""The parts of lists and pages, so that all look alike."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Final

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from perdure.surfaces.cli.terminal.hostile import lines, one_line
from perdure.surfaces.cli.terminal.output import unpacked

_DOCUMENT_LIMIT_LINES: Final = 30


def columns(*titles: str, giving_way: Iterable[str] = ()) -> Table:
    """An empty table; flexible columns are cut on a narrow terminal, all others never."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for title in titles:
        table.add_column(title, no_wrap=title not in giving_way)
    return table


def cell(text: str, style: str = "") -> Text:
    """A cell of untrusted text; it is cut if the terminal is too narrow."""
    return Text(one_line(text), style=style, no_wrap=True, overflow="ellipsis")


def facts(known: Iterable[tuple[str, Text]]) -> Table:
    """Names and values, one below the other."""
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in known:
        table.add_row(name, value)
    return table


def section(title: str, body: RenderableType) -> RenderableType:
    """A part of a page under its title."""
    return Group(Text(f"\n{title}", style="bold"), indented(body))


def indented(body: RenderableType) -> Padding:
    """The body, indented."""
    return Padding(body, (0, 0, 0, 2), expand=False)


def block(text: str, style: str = "", most: int = 200) -> Text:
    """Untrusted text of several lines."""
    return Text("\n".join(lines(text, most)), style=style, overflow="fold")


def document(text: str) -> RenderableType:
    """A stored JSON document, formatted for people."""
    value = unpacked(text)
    pretty = text if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=2)
    return block(pretty, most=_DOCUMENT_LIMIT_LINES)

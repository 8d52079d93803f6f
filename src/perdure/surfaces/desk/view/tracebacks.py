"""Tracebacks that emphasize the application's own lines: lines of libraries are paler."""

from __future__ import annotations

import re
from typing import Final

from markupsafe import Markup

from perdure.surfaces.desk.view.text import visible

_FRAME: Final = re.compile(r'^[ |+-]*File "([^"\n]*)"')
_LIBRARY: Final = re.compile(
    r"[/\\](?:site-packages|dist-packages|lib[/\\]python3[^/\\]*|src[/\\]perdure)[/\\]|^<frozen "
)
_TRACEBACK_LIMIT_CHARACTERS: Final = 20_000


def traceback(text: str, most: int = _TRACEBACK_LIMIT_CHARACTERS) -> Markup:
    """The whole traceback as `visible` shows it, with the frames of libraries marked."""
    cut = text if len(text) <= most else text[: most - 1] + "…"
    pieces: list[Markup] = []
    part: list[str] = []
    is_library = False
    for line in cut.splitlines(keepends=True):
        found = _FRAME.match(line)
        library = bool(_LIBRARY.search(found[1])) if found else is_library and line[:4].isspace()
        if library is not is_library:
            pieces.append(_shown(part, is_library, most))
            part, is_library = [], library
        part.append(line)
    return Markup("").join([*pieces, _shown(part, is_library, most)])


def _shown(lines: list[str], is_library: bool, most: int) -> Markup:
    shown = visible("".join(lines), most)
    return Markup('<span class="library">{}</span>').format(shown) if is_library and lines else shown

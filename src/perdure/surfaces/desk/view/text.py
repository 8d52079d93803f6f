"""Untrusted text, shown so that nothing in it can hide.

Arguments, errors and names may contain control characters, marks that reverse the reading direction, and zero-width
characters. HTML escaping does not stop them from misleading a reader. Each becomes a visible escape.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Final

from markupsafe import Markup, escape

LINE_LIMIT_CHARACTERS: Final = 2_000
_SHOWN_AS_IT_IS: Final = frozenset("\n\t\u200d\ufe0f")  # line breaks, tabs, and the joiner of emoji parts
_MAYBE_ODD: Final = re.compile(r"[^\n\t -~]")
_HIDDEN: Final = frozenset({"\u115f", "\u1160", "\u2800", "\u3164", "\uffa0"})  # characters without a shape


def is_odd(char: str) -> bool:
    """Whether a character moves, hides or reverses text instead of showing something."""
    category = unicodedata.category(char)
    return char not in _SHOWN_AS_IT_IS and (category[0] == "C" or category in {"Zl", "Zp"} or char in _HIDDEN)


def plain(text: str) -> str:
    r"""The text with every odd character as an escape such as `\u202e`; for attributes and simple places."""
    return _MAYBE_ODD.sub(lambda found: _escape(found[0]) if is_odd(found[0]) else found[0], text)


def visible(text: str, most: int = LINE_LIMIT_CHARACTERS) -> Markup:
    """The text as HTML, with odd characters marked and named in a tooltip; a long text is cut and ends in "…"."""
    cut = text if len(text) <= most else text[: most - 1] + "…"
    pieces: list[str] = []
    end = 0
    for found in _MAYBE_ODD.finditer(cut):
        if is_odd(found[0]):
            pieces += [escape(cut[end : found.start()]), _marked(found[0])]
            end = found.end()
    return Markup("").join([*pieces, escape(cut[end:])])


def short_url(url: str, most: int = 26) -> str:
    """A short name of a database: its scheme and the end of its path."""
    if len(url) <= most:
        return url
    scheme, _, rest = url.partition("://")
    return f"{scheme}://…/{rest.partition('?')[0].rpartition('/')[2]}"


def _marked(char: str) -> Markup:
    name = unicodedata.name(char, "control character")
    return Markup('<span class="odd" title="U+{code} {name}">{shown}</span>').format(
        code=f"{ord(char):04X}", name=name.lower(), shown=_escape(char)
    )


def _escape(char: str) -> str:
    return char.encode("unicode_escape").decode("ascii")

"""Untrusted text, made safe to show.

Arguments, errors and names of a job may contain escape sequences that recolour a terminal, retitle its window or type
into it, line breaks that forge rows of a table, and marks that reverse the reading direction. Every such character
becomes its visible escape. Markup is harmless: the text goes to the terminal as plain text and is never parsed.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Final

_SHOWN_AS_IT_IS: Final = frozenset({"\u200d", "\ufe0f"})  # join the parts of an emoji, and do nothing else
_TAB_COLUMNS: Final = 4
_BEYOND_ASCII: Final = re.compile(r"[^\n -~]")


def one_line(text: str, most: int = 2_000) -> str:
    """Text for one line: nothing in it moves the cursor, hides, or changes colour; a cut text ends in "…"."""
    cut = text if len(text) <= most else text[: most - 1] + "…"
    return cut if cut.isprintable() else "".join(_visible(char) for char in cut)


def lines(text: str, most: int = 200) -> list[str]:
    """Text of several lines, such as a traceback, each of them safe; the middle of a very long one is left out."""
    found = [one_line(line.expandtabs(_TAB_COLUMNS)) for line in text.replace("\r\n", "\n").rstrip("\n").split("\n")]
    if len(found) <= most:
        return found
    half = most // 2
    return [*found[:half], f"… {len(found) - 2 * half} lines left out …", *found[-half:]]


def safe_json(document: str) -> str:
    """The same JSON document with every character that a terminal might interpret written as an escape.

    Outside strings JSON is plain ASCII, and inside them the escape means the same.
    """
    return _BEYOND_ASCII.sub(lambda found: found[0] if found[0].isprintable() else _json_escape(found[0]), document)


def _json_escape(char: str) -> str:
    units = char.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[start : start + 4]}" for start in range(0, len(units), 4))


def _visible(char: str) -> str:
    category = unicodedata.category(char)
    if char in _SHOWN_AS_IT_IS or not (category[0] == "C" or category in {"Zl", "Zp"}):
        return char
    return char.encode("unicode_escape").decode("ascii")

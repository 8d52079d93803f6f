"""Which metrics and labels a PromQL expression names: as much of a parser as the shipped expressions need."""

from __future__ import annotations

import re
from typing import Final

from msgspec import Struct

_STRING: Final = r'"(?:[^"\\]|\\.)*"'
_TOKEN: Final = re.compile(
    rf"\s*(?:(?P<string>{_STRING})|(?P<range>\[[^\]]*\])|(?P<range_>offset\s+\d+[smhd])|(?P<number>\d+(?:\.\d+)?)|(?P<word>[a-zA-Z_$][\w$:]*)"
    r"|(?P<sign>=~|!~|!=|==|>=|<=|[-+*/%^(){},=<>]))"
)
_GROUPING: Final = frozenset({"by", "without", "on", "ignoring", "group_left", "group_right"})
FUNCTIONS: Final = frozenset(
    "time sum max min count avg rate increase absent vector histogram_quantile label_values".split()  # noqa: SIM905
)
_OPERATORS: Final = frozenset({"and", "or", "unless", "bool"})


class Selector(Struct):
    """A metric and the labels that are matched on it."""

    name: str
    labels: dict[str, str]


class Read(Struct):
    """What an expression names; `grouped` are the labels behind by, on and the like."""

    selectors: list[Selector]
    grouped: set[str]


def tokens(expression: str) -> list[tuple[str, str]]:
    """The words and signs of an expression; raises ValueError for what is none."""
    found, place = [], 0
    text = expression.strip()
    while place < len(text):
        match = _TOKEN.match(text, place)
        if match is None:
            raise ValueError(f"cannot be read from {text[place : place + 30]!r} on")
        found.append((str(match.lastgroup), match[str(match.lastgroup)]))
        place = match.end()
    return found


def read(expression: str) -> Read:
    """Read an expression; raises ValueError if brackets do not match or a function is unknown."""
    words, result, place = tokens(expression), Read([], set()), 0
    depth: list[str] = []
    while place < len(words):
        kind, text = words[place]
        after = words[place + 1][1] if place + 1 < len(words) else ""
        if kind == "word" and text in _GROUPING:
            end = _closing(words, place + 1)
            result.grouped |= {word for kind, word in words[place + 1 : end] if kind == "word"}
            place = end
        elif kind == "word" and after == "(" and text not in _GROUPING | _OPERATORS:
            if text not in FUNCTIONS:
                raise ValueError(f"names the function {text}, which this parser does not know")
        elif kind == "word" and text not in _OPERATORS and not (text in FUNCTIONS and after in {"by", "without"}):
            labels: dict[str, str] = {}
            if after == "{":
                end = _closing(words, place + 1)
                inner = words[place + 2 : end]
                labels = {inner[at][1]: inner[at + 2][1][1:-1] for at in range(0, len(inner), 4)}
                place = end
            result.selectors.append(Selector(text, labels))
        elif text in "({":
            depth.append(text)
        elif text in ")}" and (not depth or depth.pop() + text not in {"()", "{}"}):
            raise ValueError("has brackets that do not match")
        place += 1
    if depth:
        raise ValueError("has brackets that do not match")
    return result


def _closing(words: list[tuple[str, str]], opening: int) -> int:
    end = opening
    while words[end][1] not in {")", "}"}:
        end += 1
    return end

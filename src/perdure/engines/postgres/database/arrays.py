"""PostgreSQL arrays as text, built by a handful of operations on whole strings.

The driver builds an array element by element, which costs more than the rest of an insert. Here
the elements are joined first and escaped together; the NUL, which PostgreSQL cannot store in any text, marks the joins.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, cast

_MARK: Final = "\0"
_REPLACEMENT: Final = "\ufffd"


class UnstorableTextError(ValueError):
    """A text holds a NUL or half a surrogate pair, which PostgreSQL cannot store."""


def text_array(values: Sequence[str | None]) -> str:
    """An array of texts, exact for any content; None is NULL. Raises UnstorableTextError."""
    if None in values:
        return _with_nulls(values)
    if not values:
        return "{}"
    joined = _MARK.join(cast("Sequence[str]", values))
    if joined.count(_MARK) != len(values) - 1:
        raise UnstorableTextError("must not contain the NUL character")
    require_storable(joined)
    if "\\" in joined:
        joined = joined.replace("\\", "\\\\")
    if '"' in joined:
        joined = joined.replace('"', '\\"')
    return '{"' + joined.replace(_MARK, '","') + '"}'


def number_array(values: Iterable[float | None]) -> str:
    """An array of numbers; None is NULL."""
    return "{" + ",".join(["NULL" if value is None else str(value) for value in values]) + "}"


def require_storable(text: str) -> None:
    """Raise UnstorableTextError for half a surrogate pair, which no encoding takes."""
    if text.isascii():
        return
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise UnstorableTextError("must not contain half a surrogate pair") from error


def storable(text: str) -> str:
    """The same text with what PostgreSQL cannot store replaced: for errors and notes, which must never be refused."""
    if _MARK in text:
        text = text.replace(_MARK, _REPLACEMENT)
    if text.isascii():
        return text
    return text.encode("utf-8", "surrogatepass").decode("utf-8", "replace")


def storable_array(values: Sequence[str | None]) -> str | None:
    """An array of texts that must never be refused, see `storable`; None, which is NULL, if all of them are."""
    if not any(values) and values.count(None) == len(values):
        return None
    try:
        return text_array(values)
    except UnstorableTextError:
        return text_array([None if value is None else storable(value) for value in values])


def _with_nulls(values: Sequence[str | None]) -> str:
    return "{" + ",".join(["NULL" if value is None else text_array((value,))[1:-1] for value in values]) + "}"

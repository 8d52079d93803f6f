"""A condition on what jobs carry: their arguments, metadata, result, last error or tags."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final, Literal

from msgspec import Struct
from msgspec.structs import force_setattr

from perdure.errors import ArgumentError

Field = Literal["args", "meta", "result", "error", "tags"]
Op = Literal["=", "!=", "~", ">", "<", "exists"]
Scalar = str | int | float | bool | None

FIELDS: Final = ("args", "meta", "result", "error", "tags")
OPS: Final = ("=", "!=", "~", ">", "<", "exists")
PATH_LIMIT_PARTS: Final = 16
PATH_PART_LIMIT_CHARACTERS: Final = 200
VALUE_LIMIT_CHARACTERS: Final = 1_000
CONDITIONS_LIMIT: Final = 10
_ERROR_PATHS: Final = ((), ("type",), ("message",))
_PLAIN: Final = re.compile(r"[A-Za-z0-9]{2,}")
_EXACT_NUMBERS_BELOW: Final = 10**15
_ECHO_LIMIT_CHARACTERS: Final = 60


class Condition(Struct, frozen=True):
    """One condition: the value at `path` inside `field` compares with `value` as `op` says.

    `=` and `!=` compare with a number, a word such as true, or a text, as they are written: "42" means the number 42
    and the text "42". `!=` also holds where there is no such value. `~` looks for a piece of text, in any case; in an
    object or a list it looks at the JSON text. `>` and `<` compare numbers with a number, and texts with any other
    text. A step of the path is a key, or the place in a list (0 is the first, -1 the last). Tags have no path; errors
    have `type`, `message`, or none, which means both.
    """

    field: Field
    path: tuple[str, ...] = ()
    op: Op = "exists"
    value: str | None = None

    if TYPE_CHECKING:  # the accepted types; the stored ones stand above

        def __init__(self, field: str, path: Iterable[str] = ..., op: str = ..., value: Scalar = ...) -> None: ...

    def __post_init__(self) -> None:
        path: object = self.path
        force_setattr(self, "path", (path,) if isinstance(path, str) else tuple(self.path))
        force_setattr(self, "value", None if self.op == "exists" else value_text(self.value))
        self._check()

    def __str__(self) -> str:
        return ".".join((self.field, *self.path)) + (f"{self.op}{self.value}" if self.op != "exists" else " exists")

    @property
    def candidates(self) -> tuple[Scalar, ...]:
        """The values that `=` means: the text itself, and the number or word that it reads as."""
        text = self.value or ""
        read = _read(text)
        return (text,) if isinstance(read, str) else (text, read)

    @property
    def number(self) -> int | float | None:
        """The number that `>` and `<` compare with; None: it is a text."""
        read = _read(self.value or "")
        return read if isinstance(read, (int, float)) and not isinstance(read, bool) else None

    @property
    def needle(self) -> str | None:
        """A text in lower case that a document holds if it meets the condition, however it is written; None: unknown.

        Letters and digits of ASCII are never escaped in JSON, and whole numbers are written as their digits.
        """
        text = self.value or ""
        if self.op not in {"=", "~"} or not _PLAIN.fullmatch(text):
            return None
        number = self.number if self.op == "=" else None
        is_whole = number is None or (isinstance(number, int) and abs(number) < _EXACT_NUMBERS_BELOW)
        return text.lower() if is_whole else None

    def _check(self) -> None:
        if self.field not in FIELDS:
            raise ArgumentError("where", f"has no field {_echo(self.field)}: use one of {', '.join(FIELDS)}")
        if self.op not in OPS:
            raise ArgumentError("where", f"has no operator {_echo(self.op)}: use one of {' '.join(OPS)}")
        self._check_path()
        if self.value is not None:
            _check_text("a value", self.value, VALUE_LIMIT_CHARACTERS)
        if self.op == "~" and not self.value:
            raise ArgumentError("where", f"looks for an empty text in {'.'.join((self.field, *self.path))}")

    def _check_path(self) -> None:
        if len(self.path) > PATH_LIMIT_PARTS:
            raise ArgumentError("where", f"has a path of {len(self.path)} parts; {PATH_LIMIT_PARTS} are the most")
        for step in self.path:
            if not isinstance(step, str) or not step:
                raise ArgumentError(
                    "where", f"has an empty part in the path {_echo('.'.join(map(str, (self.field, *self.path))))}"
                )
            _check_text("a part of a path", step, PATH_PART_LIMIT_CHARACTERS)
        if self.field == "tags" and (self.path or self.op in {">", "<"}):
            raise ArgumentError("where", "tags have no path, and are compared by =, !=, ~ and exists: tags=urgent")
        if self.field == "error" and self.path not in _ERROR_PATHS:
            raise ArgumentError(
                "where", f"error has no {_echo('.'.join(self.path))}: error.type, error.message or error"
            )


def value_text(value: object) -> str:
    """A value as it is written in a search."""
    if isinstance(value, str):
        return value
    if value is None or isinstance(value, (bool, int)) or (isinstance(value, float) and math.isfinite(value)):
        return json.dumps(value)
    raise ArgumentError("where", f"compares with {_echo(value)}: use a text, a number, true, false or null")


def _read(text: str) -> Any:
    """The number or word that a text is in JSON; else the text."""
    try:
        read = json.loads(text) if len(text) <= _ECHO_LIMIT_CHARACTERS else text
    except ValueError:
        return text
    is_scalar = read is None or isinstance(read, (bool, int)) or (isinstance(read, float) and math.isfinite(read))
    return read if is_scalar and text == text.strip() else text


def _check_text(what: str, text: str, longest: int) -> None:
    if len(text) > longest:
        raise ArgumentError("where", f"has {what} of {len(text)} characters; {longest} are the most")
    if "\x00" in text or any("\ud800" <= letter <= "\udfff" for letter in text):
        raise ArgumentError("where", f"has {what} with characters that no stored text has: {_echo(text)}")


def _echo(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _ECHO_LIMIT_CHARACTERS else f"{text[:_ECHO_LIMIT_CHARACTERS]}…"

"""Passwords: where they stand in a URL, and how they are kept out of what is shown.

A short password is also a piece of ordinary words. So it is struck out where passwords stand, and only a long one
wherever it turns up.
"""

from __future__ import annotations

import re
from typing import Final

ESCAPES: Final = "in a password write # as %23, / as %2F, ? as %3F and @ as %40"
"""What to say of a URL that was cut in the wrong places."""

_STRUCK: Final = "***"
_LONG: Final = 8
_IN_ADDRESS: Final = re.compile(r"(//[^/?#:@\s]*:)(?:[^/?#\s]*|[^@\s]*)@")
_IN_OPTIONS: Final = re.compile(r"\b(password=)[^&#\s]*", re.IGNORECASE)


def without_password(text: str) -> str:
    """A URL as it may be shown, or a text with URLs in it."""
    return _IN_OPTIONS.sub(rf"\1{_STRUCK}", _IN_ADDRESS.sub(rf"\1{_STRUCK}@", text))


def strike(text: str, password: str | None, *, quoted: bool = False) -> str:
    """What a driver or server has said, without this password. `quoted`: it may have quoted a piece of a URL."""
    text = without_password(text)
    if not password:
        return text
    if len(password) >= _LONG:
        return text.replace(password, _STRUCK)
    return text.replace(f'"{password}"', f'"{_STRUCK}"') if quoted else text

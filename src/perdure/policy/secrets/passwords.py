"""Passwords: where they stand in a URL, and how they are kept out of messages.

A short password may also occur in ordinary words. So it is removed where passwords stand, and only a long one is
removed everywhere.
"""

from __future__ import annotations

import re
from typing import Final

ESCAPES: Final = "in a password write # as %23, / as %2F, ? as %3F and @ as %40"
"""The advice for a URL that was split in the wrong places."""

_STRUCK: Final = "***"
_SHORTEST_REDACTED_CHARACTERS: Final = 8
_IN_ADDRESS: Final = re.compile(r"(//[^/?#:@\s]*:)(?:[^/?#\s]*|[^@\s]*)@")
_IN_OPTIONS: Final = re.compile(r"\b(password=)[^&#\s]*", re.IGNORECASE)


def without_password(text: str) -> str:
    """A URL, or a text with URLs in it, without passwords."""
    return _IN_OPTIONS.sub(rf"\1{_STRUCK}", without_address_password(text))


def without_address_password(text: str) -> str:
    """The same for passwords in addresses alone: `//user:password@host`."""
    return _IN_ADDRESS.sub(rf"\1{_STRUCK}@", text)


def strike(text: str, password: str | None, *, quoted: bool = False) -> str:
    """The message of a driver or server, without this password. `quoted`: it may quote a piece of a URL."""
    text = without_password(text)
    if not password:
        return text
    if len(password) >= _SHORTEST_REDACTED_CHARACTERS:
        return text.replace(password, _STRUCK)
    return text.replace(f'"{password}"', f'"{_STRUCK}"') if quoted else text

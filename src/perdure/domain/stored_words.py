"""Words stored in the database: a newer release may have stored some that this one does not know (G10)."""

from __future__ import annotations

from enum import StrEnum
from typing import TypeVar

Word = TypeVar("Word", bound=StrEnum)


def read_word(kind: type[Word], word: str) -> Word:
    """The member of this name. A word that only a newer release knows stays as written, and equals no other."""
    try:
        return kind(word)
    except ValueError:
        foreign = str.__new__(kind, word)
        foreign._name_ = foreign._value_ = word
        return foreign


def is_known(word: StrEnum) -> bool:
    """Whether this release knows the word."""
    return word in type(word).__members__.values()

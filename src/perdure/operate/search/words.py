r"""A search as words: split at spaces, with quotes around what holds spaces or signs.

A quoted piece may stand anywhere in a word: `args.url~"a b"`, `args."my key"=1`. Inside quotes, \" is a quote and \\
a backslash. Each letter remembers whether it was quoted, so that a quoted sign never means anything.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from perdure.errors import ArgumentError

SEARCH_LIMIT_CHARACTERS: Final = 4_000
SEARCH_LIMIT_WORDS: Final = 50
SIGNS: Final = (":", "!=", "=", "~", ">", "<")
_PLAIN: Final = frozenset("-_/@+%*#&$^;,?")


class Letter(Struct, frozen=True):
    """One letter of a word, and whether it stood in quotes."""

    text: str
    quoted: bool = False


class Word(Struct, frozen=True):
    """A piece of a search between spaces: what was typed, and its letters."""

    typed: str
    letters: tuple[Letter, ...]

    def split(self) -> tuple[tuple[Letter, ...], str, str] | None:
        """The text before the first sign, the sign, and the value after it; None: there is no sign."""
        for place, letter in enumerate(self.letters):
            for sign in SIGNS:
                if not letter.quoted and self._has(sign, place):
                    return self.letters[:place], sign, text_of(self.letters[place + len(sign) :])
        return None

    def _has(self, sign: str, place: int) -> bool:
        found = self.letters[place : place + len(sign)]
        return text_of(found) == sign and not any(letter.quoted for letter in found)


def words_of(text: str) -> list[Word]:
    """The words of a search; raises ArgumentError if it is not text, too long, or has an open quote."""
    words = _read(text, splits=True)
    if len(words) > SEARCH_LIMIT_WORDS:
        raise ArgumentError("search", f"has {len(words)} words; {SEARCH_LIMIT_WORDS} are the most")
    return words


def one_word(text: str) -> Word:
    """A text as one word, with the spaces that it has."""
    words = _read(text, splits=False)
    return words[0] if words else Word("", ())


def _read(text: str, *, splits: bool) -> list[Word]:
    if not isinstance(text, str):
        raise ArgumentError("search", f"must be text, got {text!r}")
    if len(text) > SEARCH_LIMIT_CHARACTERS:
        raise ArgumentError("search", f"has {len(text):,} characters; {SEARCH_LIMIT_CHARACTERS:,} are the most")
    reader = _Reader(text, splits=splits)
    while reader.place < len(text):
        reader.read()
    if reader.is_open:
        begun = text[reader.start :][:60]
        raise ArgumentError("search", f'has a quote that is not closed: {begun}; write \\" for a quote itself')
    reader.end_word()
    return reader.words


class _Reader:
    """Goes through a search letter by letter."""

    def __init__(self, text: str, *, splits: bool) -> None:
        self._text = text
        self._splits = splits
        self._letters: list[Letter] = []
        self.words: list[Word] = []
        self.start = 0
        self.place = 0
        self.is_open = False  # a quote

    def read(self) -> None:
        letter = self._text[self.place]
        if self.is_open and letter == "\\" and self._text[self.place + 1 : self.place + 2] in {'"', "\\"}:
            self.place += 1
            self._letters.append(Letter(self._text[self.place], quoted=True))
        elif letter == '"':
            self.is_open = not self.is_open
        elif self._splits and letter.isspace() and not self.is_open:
            self.end_word()
            self.start = self.place + 1
        else:
            self._letters.append(Letter(letter, quoted=self.is_open))
        self.place += 1

    def end_word(self) -> None:
        if typed := self._text[self.start : self.place]:
            self.words.append(Word(typed, tuple(self._letters)))
        self._letters = []


def text_of(letters: Sequence[Letter]) -> str:
    """The letters as text, without quotes."""
    return "".join(letter.text for letter in letters)


def steps_of(letters: Sequence[Letter]) -> list[str]:
    """The letters of a path, split at its dots."""
    steps = [""]
    for letter in letters:
        if letter.text == "." and not letter.quoted:
            steps.append("")
        else:
            steps[-1] += letter.text
    return steps


def quoted(text: str, *, is_step: bool = False) -> str:
    """Text as it is typed: in quotes where it holds spaces, signs or, in a step of a path, dots."""
    plain = _PLAIN if is_step else _PLAIN | frozenset(".:=~<>!()[]{}|")
    if text and all(letter.isalnum() or letter in plain for letter in text):
        return text
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'

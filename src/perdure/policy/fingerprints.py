"""Fingerprints of errors: which failures have the same cause.

Two failures belong together if kind, error type and message agree once everything is taken out of the message that
differs from one job to the next: numbers, ids, quoted values, times, addresses, and the variable parts of paths. What
is left is also what people read: "gateway … did not answer in … s".

The rules are part of what is stored: with another rule, failures of today no longer join the groups of yesterday.
"""

from __future__ import annotations

import hashlib
import re
from functools import lru_cache
from typing import Final

from msgspec import Struct

GAP: Final = "…"
_MESSAGE_READ_CHARACTERS: Final = 2_000  # what comes behind is detail
_TEXT_LIMIT_CHARACTERS: Final = 300
_HASH_BYTES: Final = 6

_QUOTES: Final = frozenset("'\"`“«")
_QUOTED: Final = re.compile(
    r"""
      (?<!\w)'(?:[^'\\\n]|\\.){0,200}'(?!\w)               # not the apostrophe of a word
    | (?<!\w)"(?:[^"\\\n]|\\.){0,200}"(?!\w)
    | `[^`\n]{0,200}` | “[^”\n]{0,200}” | «[^»\n]{0,200}»
    """,
    re.VERBOSE,
)
_WORKER: Final = re.compile(r"(?<=\bworker )\S+(?= died)")  # our own words for a crash
_SUSPECTS: Final = frozenset("0123456789@/:")  # only in a word with one of these can there be anything to take out
_WORD_LIMIT_CHARACTERS: Final = 80
_WHOLE: Final = re.compile(
    r"""
      [^\s@<>"'(),;]+@[\w-]+(?:\.[\w-]+)+              # mail addresses
    | (?<=://)\S+                                    # all of a URL but its scheme
    | /(?:tmp|var/tmp|var/folders|proc)/\S+
    | \b\d{4}-\d\d-\d\d(?:T\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?)?(?:Z|[+-]\d\d:?\d\d)?\b
    | \b[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\b
    | \b0[xX][0-9a-fA-F]+\b
    | (?<![\w:])\[?(?:[0-9a-fA-F]{0,4}:){2,7}[0-9a-fA-F]{0,4}\]?(?::\d+)?(?![\w:])   # IPv6, and times of day
    | \b\d{1,3}(?:\.\d{1,3}){3}(?::\d+)?\b
    | (?:(?<!\S)[-+])?\b[0-9a-fA-F]{8,}\b            # hashes and ids, and large numbers
    | \b(?=[0-9A-Za-z_]*\d)[0-9A-Za-z_]{20,}\b       # ULIDs, tokens, keys
    """,
    re.VERBOSE,
)
_NUMBERED: Final = re.compile(r"(?<![\w.])[-+]?\d[\d_,.]*(?:[eE][-+]?\d+)?(?![\w])|[^\W\d_]*\d\w*")
_UNIT: Final = re.compile(r"[\d.,_]+([a-zA-Zµ%]{1,3})")
_WORD: Final = re.compile(r"([^\W\d_]{2,})\d+")
_ROW: Final = re.compile(rf"{GAP}(?:[\s,;:./x×+-]*{GAP})+")


class Fingerprint(Struct, frozen=True):
    """The identity of a failure: a short hash, and its message without the parts that differ from job to job."""

    hash: str
    message: str


@lru_cache(maxsize=256)  # jobs that fail together often say the same
def fingerprint(kind: str, error_type: str, message: str) -> Fingerprint:
    """The fingerprint of a failure of a job of this kind."""
    text = normalised(message)
    document = f"{kind}\x00{error_type}\x00{text}".encode("utf-8", "backslashreplace")
    return Fingerprint(hashlib.blake2b(document, digest_size=_HASH_BYTES).hexdigest(), text)


def normalised(message: str) -> str:
    """A message without numbers, ids, quoted values, times, addresses and variable parts of paths."""
    text = message[:_MESSAGE_READ_CHARACTERS]
    if not _QUOTES.isdisjoint(text):
        text = _QUOTED.sub(GAP, text)
    if "worker " in text:
        text = _WORKER.sub(GAP, text)
    words: list[str] = []
    room = 2 * _TEXT_LIMIT_CHARACTERS  # rows of gaps become one
    for word in text.split():
        words.append(word if _SUSPECTS.isdisjoint(word) else _without_values(word))
        room -= len(words[-1]) + 1
        if room < 0:
            break
    text = " ".join(words)
    text = _ROW.sub(GAP, text) if GAP in text else text
    return text if len(text) <= _TEXT_LIMIT_CHARACTERS else text[: _TEXT_LIMIT_CHARACTERS - 1] + GAP


def _without_values(word: str) -> str:
    """A word without numbers, ids and addresses; one that is too long to be a word ends early."""
    text = word if len(word) <= _WORD_LIMIT_CHARACTERS else word[:_WORD_LIMIT_CHARACTERS] + GAP
    return _NUMBERED.sub(_without_number, _WHOLE.sub(GAP, text))


def _without_number(found: re.Match[str]) -> str:
    """Keep what is no number of `30s` and `shard12`; of anything else with a digit in it, nothing."""
    word = found[0]
    if unit := _UNIT.fullmatch(word):
        return GAP + unit[1]
    if name := _WORD.fullmatch(word):
        return name[1] + GAP
    return GAP

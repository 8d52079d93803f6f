"""Which jobs a pause applies to, and what is noted at the jobs that it holds."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import msgspec

from perdure.domain.gate import Pause

PAUSE_NOTE: Final = "pause "
"""How the note of a job begins that a pause holds; the id of the pause follows."""

_ABSENT: Final = object()
_AFTER_ID: Final = " :,"  # what may follow the id in a note


def covers(pause: Pause, queue: str, kind: str, args: str) -> bool:
    """Whether a pause applies to a job of this queue, kind and arguments (a JSON object): all its parts must match.

    Arguments are compared as stored: one that the caller omitted has no value here.
    """
    if (pause.queue or queue, pause.kind or kind) != (queue, kind):
        return False
    if pause.args is None:
        return True
    wanted, given = _decoded(pause.args), _decoded(args)
    if not isinstance(wanted, dict) or not isinstance(given, dict):
        return False
    return all(_same(value, given.get(name, _ABSENT)) for name, value in wanted.items())


def note_of(pause: Pause) -> str:
    """What is noted at a job that this pause holds."""
    return f"{PAUSE_NOTE}{pause.id}: {pause.why or f'by {pause.actor}'}"


def openings_of_pauses(ids: Iterable[str]) -> list[str]:
    """How the notes of jobs begin that these pauses hold; a note that is only the id counts with a space after it."""
    return [f"{PAUSE_NOTE}{pause_id}{end}" for pause_id in ids for end in _AFTER_ID]


def _decoded(args: str) -> Any:
    try:
        return msgspec.json.decode(args)
    except (msgspec.DecodeError, RecursionError):  # damaged: it matches nothing
        return None


def _same(one: Any, other: Any) -> bool:
    """Equal as JSON: `1` and `1.0` are, `1` and `true` are not."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_same(value, other[name]) for name, value in one.items())
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(_same(*pair) for pair in zip(one, other, strict=True))
    return bool(one == other)

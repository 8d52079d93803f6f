"""Checks of the arguments of store calls: each refuses by field and value, and says what to write instead."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from perdure.domain.jobs.ids import JobId, as_job_id
from perdure.domain.jobs.states import JobState
from perdure.errors import ArgumentError
from perdure.kinds.options import checked_name

MARK_LIMIT_CHARACTERS: Final = 50
ROWS_SKIPPED_LIMIT: Final = 10_000
_ECHO_LIMIT_CHARACTERS: Final = 120
_STATES: Final = frozenset(JobState)
_NUL: Final = "\x00"


def read_ids(value: object) -> tuple[JobId, ...]:
    """The ids of jobs: one, or several in any collection."""
    if not isinstance(value, Iterable) or isinstance(value, bytes):
        raise ArgumentError("ids", f"must be ids of jobs, such as ids=(handle.id,), got {echo(value)}")
    return tuple(as_job_id(each, field="ids") for each in ([value] if isinstance(value, str) else value))


def read_states(value: object) -> frozenset[JobState]:
    """States of jobs, given as members of JobState or as their words: one, or several in any collection."""
    if not isinstance(value, Iterable) or isinstance(value, bytes):
        raise ArgumentError("states", f'must be states, such as states=("dead", "cancelled"), got {echo(value)}')
    return frozenset(_state(each) for each in ([value] if isinstance(value, str) else value))


def _state(value: object) -> JobState:
    if isinstance(value, JobState):  # also one that a view has shown and only a newer release knows
        return value
    if isinstance(value, str) and value in _STATES:
        return JobState(value)
    raise ArgumentError("states", f"must be among {', '.join(JobState)}, got {echo(value)}")


def check_text(field: str, value: object) -> None:
    """Refuse values that are not text, empty text, and characters that cannot be stored."""
    if not isinstance(value, str):
        raise ArgumentError(field, f"must be text, got {echo(value)}; leave it out to ask for any")
    if not value:
        raise ArgumentError(field, "must not be empty; leave it out to ask for any")
    if _NUL in value or not _is_encodable(value):
        raise ArgumentError(field, f"holds characters that no stored text has: {echo(value)}")


def check_mark(value: object) -> None:
    """Refuse an invalid mark: it must be a short, printable word."""
    checked_name("mark", value, MARK_LIMIT_CHARACTERS)


def check_number(value: object, limit: int, *, is_alone: bool) -> None:
    """Refuse a page number that is too high, or given together with `before`."""
    if not is_alone:
        raise ArgumentError("number", "and before are both given: choose one")
    check_whole("number", value, 1)
    if isinstance(value, int) and value * limit > ROWS_SKIPPED_LIMIT:
        reach = f"reaches row {value * limit:,}, beyond the {ROWS_SKIPPED_LIMIT:,} that pages by number go to"
        raise ArgumentError("number", f"{value} of {limit} rows each {reach}: go on with Page(before=...)")


def check_whole(field: str, value: object, least: int, most: int | None = None) -> None:
    """Refuse values that are not a whole number from `least` to `most`."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least or (most is not None and value > most):
        span = f"of at least {least}" if most is None else f"from {least} to {most:,}"
        raise ArgumentError(field, f"must be a whole number {span}, got {echo(value)}")


def echo(value: object) -> str:
    """A value as repeated in an error message."""
    text = repr(value)
    return text if len(text) <= _ECHO_LIMIT_CHARACTERS else f"{text[:_ECHO_LIMIT_CHARACTERS]}…"


def _is_encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True

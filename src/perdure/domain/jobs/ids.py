"""Identities: job ids that sort by creation time, and random worker ids."""

from __future__ import annotations

import os
import re
import secrets
import time
from functools import lru_cache
from typing import Final, NewType

from perdure.errors import ArgumentError

JobId = NewType("JobId", str)
WorkerId = NewType("WorkerId", int)

_UUID: Final = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_VARIANT: Final = "89ab"
_FIRST_WORKER: Final = 2**40  # above any number that a database has counted
_IDS_PER_DRAW: Final = 256
_NOISE: Final[list[str]] = []
os.register_at_fork(after_in_child=_NOISE.clear)  # otherwise parent and child would make the same ids


def new_job_id() -> JobId:
    """Make a UUID of version 7: globally unique, and sorted by creation time, which keeps indexes compact."""
    try:
        noise = _NOISE.pop()
    except IndexError:
        noise = _more_noise()
    return JobId(_prefix(time.time_ns() // 1_000_000) + noise)


@lru_cache(maxsize=2)
def _prefix(milliseconds: int) -> str:
    moment = f"{milliseconds:012x}"
    return f"{moment[:8]}-{moment[8:]}-7"


def _more_noise() -> str:
    """Get the random bits for many ids at once: one system call costs more than the rest of an id."""
    text = os.urandom(10 * _IDS_PER_DRAW).hex()
    pieces = (text[start : start + 20] for start in range(0, len(text), 20))
    _NOISE.extend(f"{n[:3]}-{_VARIANT[int(n[3], 16) & 3]}{n[4:7]}-{n[7:19]}" for n in pieces)
    return _NOISE.pop()


def new_worker_id() -> WorkerId:
    """Draw a random worker id.

    The database does not count them: a restored older copy would assign an id that is in use.
    """
    return WorkerId(_FIRST_WORKER + secrets.randbelow(_FIRST_WORKER))


def is_job_id(value: object) -> bool:
    """Whether this is a UUID or its text."""
    return _UUID.fullmatch(str(value).strip().lower()) is not None


def as_job_id(value: object, *, field: str = "id", advice: str = "") -> JobId:
    """Accept a UUID, or its text, as a job id; refuse anything else by name, with this advice."""
    text = str(value).strip().lower()
    if not _UUID.fullmatch(text):
        raise ArgumentError(field, f"must be a UUID such as {new_job_id()}, got {value!r}{advice}")
    return JobId(text)

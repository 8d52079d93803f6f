"""Identities: job ids that sort by the time they were made, and worker ids given by the database."""

from __future__ import annotations

import os
import re
import time
from typing import Final, NewType

from perdure.errors import ArgumentError

JobId = NewType("JobId", str)
WorkerId = NewType("WorkerId", int)

_UUID: Final = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_VARIANT: Final = "89ab"


def new_job_id() -> JobId:
    """Make a UUID of version 7: unique everywhere, and sorted by creation time, which keeps indexes compact."""
    noise = os.urandom(10)
    text = ((time.time_ns() // 1_000_000).to_bytes(6, "big") + noise).hex()
    variant = _VARIANT[noise[2] & 3]
    return JobId(f"{text[:8]}-{text[8:12]}-7{text[13:16]}-{variant}{text[17:20]}-{text[20:]}")


def as_job_id(value: object) -> JobId:
    """Accept a UUID, or its text, as the id of a job; refuse anything else by name."""
    text = str(value).strip().lower()
    if not _UUID.fullmatch(text):
        raise ArgumentError("id", f"must be a UUID such as {new_job_id()}, got {value!r}; for other keys use Unique")
    return JobId(text)

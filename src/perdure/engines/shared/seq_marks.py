"""The marks of the newest place in line: PostgreSQL notes them, so that a due job enters the line by its due time."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

SEQ_MARKED_EVERY: Final = timedelta(milliseconds=500)
"""The newest number is noted no more often than this."""

SEQ_MARKS_KEPT: Final = timedelta(hours=1)
"""Older marks are deleted, except the newest of them: all jobs that were due by then are ready."""

"""Log lines that are stored with their job."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from datetime import datetime
from typing import Final

from msgspec import Struct

from perdure.domain.jobs.ids import JobId
from perdure.domain.jobs.job import Claim

LINES_KEPT: Final = 200
"""How many lines are kept with each job: the newest."""

LINE_LIMIT_CHARACTERS: Final = 2_000
"""The longest line that is kept, in characters."""


class LogLine(Struct, frozen=True, kw_only=True):
    """One line of a job's log. Numbers rise over all its attempts; control characters are unchanged."""

    number: int
    at: datetime
    level: str
    text: str


class NewLine(Struct, frozen=True, kw_only=True):
    """A line to be stored for the job of a claim."""

    claim: Claim
    at: datetime
    level: str
    text: str


def by_job(lines: Iterable[NewLine], keep: int) -> list[tuple[int, NewLine]]:
    """The newest `keep` lines of each claim with their positions from 1 on, by job, uncut."""
    kept: dict[tuple[JobId, int], list[NewLine]] = defaultdict(list)
    for line in lines:
        kept[line.claim.job_id, line.claim.token].append(line)
    return [placed for _, own in sorted(kept.items()) for placed in enumerate(own[-keep:] if keep > 0 else (), 1)]


def cut(text: str) -> str:
    """The text of a line, cut to the longest length; a cut one ends in "…"."""
    return text if len(text) <= LINE_LIMIT_CHARACTERS else text[: LINE_LIMIT_CHARACTERS - 1] + "…"

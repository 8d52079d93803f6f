"""What a job has logged, as far as it is kept with the job."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from datetime import datetime
from typing import Final

from msgspec import Struct

from perdure.domain.jobs.ids import JobId
from perdure.domain.jobs.job import Claim

LINES_KEPT: Final = 200
"""So many lines are kept with each job, the newest."""

LONGEST_LINE: Final = 2_000
"""Characters of a line that are kept."""


class LogLine(Struct, frozen=True, kw_only=True):
    """One line of a job's log. Numbers rise over all its attempts; control characters are as they were written."""

    number: int
    at: datetime
    level: str
    text: str


class NewLine(Struct, frozen=True, kw_only=True):
    """A line to be kept for the job of a claim."""

    claim: Claim
    at: datetime
    level: str
    text: str


def by_job(lines: Iterable[NewLine], keep: int) -> list[tuple[int, NewLine]]:
    """The newest `keep` lines of each claim with their places from 1 on, by job; each as long as it was given."""
    kept: dict[tuple[JobId, int], list[NewLine]] = defaultdict(list)
    for line in lines:
        kept[line.claim.job_id, line.claim.token].append(line)
    return [placed for _, own in sorted(kept.items()) for placed in enumerate(own[-keep:] if keep > 0 else (), 1)]


def cut(text: str) -> str:
    """The text of a line, no longer than is kept; one that was cut ends in "…"."""
    return text if len(text) <= LONGEST_LINE else text[: LONGEST_LINE - 1] + "…"

"""What an engine can say of its own health: `perdure doctor` asks, and so may anything that watches a database."""

from __future__ import annotations

from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final, Protocol

from msgspec import Struct

from perdure.domain.jobs.ids import JobId


class Severity(StrEnum):
    """How bad it is."""

    OK = "ok"
    WARNING = "warning"  # works, and somebody should look at it in daylight
    PROBLEM = "problem"  # jobs are at risk or do not run


class Finding(Struct, frozen=True):
    """One thing looked at: what was seen, how bad it is, and what to do if it is bad."""

    check: str
    severity: Severity
    seen: str
    advice: str = ""


class Waiting(Struct, frozen=True):
    """Since when the longest waiting ready job of a queue has been waiting for a worker."""

    queue: str
    since: datetime


class ParkedAhead(Struct, frozen=True):
    """Jobs that were parked by a clock which has been put back since, and by how much it was ahead at most."""

    jobs: int
    by: timedelta


CLOCK_SLACK: Final = timedelta(minutes=1)
"""What is dated farther ahead than this was dated by a clock that has been put back since."""


class DiagnosisStore(Protocol):
    """How an engine is examined. Works on any database that can be opened, whatever its schema."""

    async def diagnose(self) -> list[Finding]:
        """Look at the library or server, its durability settings, and what makes this engine slow or unsafe."""

    async def waiting(self) -> list[Waiting]:
        """For each queue with ready jobs, the longest wait. Needs a current schema."""

    async def parked_ahead(self) -> ParkedAhead | None:
        """Jobs that wait too long, because a clock that was ahead parked them; those scheduled for a date do not."""

    async def redate_parked(self, actor: str, limit: int) -> list[JobId]:
        """Let such jobs wait from now on for as long as they were meant to; each is recorded in the audit trail.

        What they wait for by the clock inside (a sleep, a poll, a try of a step) is dated anew with them.
        """


def fine(check: str, seen: str) -> Finding:
    """Nothing to do."""
    return Finding(check, Severity.OK, seen)


def warning(check: str, seen: str, advice: str) -> Finding:
    """Works, and somebody should look at it."""
    return Finding(check, Severity.WARNING, seen, advice)


def problem(check: str, seen: str, advice: str) -> Finding:
    """Jobs are at risk or do not run."""
    return Finding(check, Severity.PROBLEM, seen, advice)

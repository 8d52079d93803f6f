"""An engine's own health checks, for `perdure doctor` and for monitoring."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Protocol

from msgspec import Struct

from perdure.domain.jobs.ids import JobId
from perdure.domain.operate.audit import By


class Severity(StrEnum):
    """How bad it is."""

    OK = "ok"
    WARNING = "warning"  # works, but should be checked during the day
    PROBLEM = "problem"  # jobs are at risk or do not run


class Finding(Struct, frozen=True):
    """One check: what was seen, how bad it is, and what to do if it is bad."""

    check: str
    severity: Severity
    seen: str
    advice: str = ""


class Waiting(Struct, frozen=True):
    """Since when the longest waiting ready job of a queue has been waiting for a worker."""

    queue: str
    since: datetime


class PausedJobs(Struct, frozen=True):
    """Jobs of one kind that are held back for one reason, and since when the first of them has been due.

    `note` is a detail of one of them: the name of a budget or gate.
    """

    reason: str
    kind: str
    note: str | None
    jobs: int
    since: datetime


class ParkedAhead(Struct, frozen=True):
    """Jobs that were parked by a clock which has been put back since, and by how much it was ahead at most."""

    jobs: int
    by: timedelta


class DiagnosisStore(Protocol):
    """How an engine is examined. Works on any database that can be opened, with any schema."""

    async def diagnose(self) -> list[Finding]:
        """Check the library or server, its durability settings, and what makes this engine slow or unsafe."""

    async def waiting(self) -> list[Waiting]:
        """For each queue with ready jobs, the longest wait. Needs a current schema."""

    async def paused(self, reasons: Collection[str], cap: int) -> list[PausedJobs]:
        """Jobs that are held back for one of these reasons, by reason and kind. Needs a current schema.

        At most `cap` jobs that are held back for any reason are looked at.
        """

    async def parked_ahead(self) -> ParkedAhead | None:
        """Jobs that wait too long, because a clock that was ahead parked them; those scheduled for a date do not."""

    async def redate_parked(self, by: By, limit: int) -> list[JobId]:
        """Give such jobs their intended wait from now on; each is recorded in the audit trail.

        Their inner waits by the clock (a sleep, a poll, a try of a step) are dated again with them.
        """


def fine(check: str, seen: str) -> Finding:
    """Nothing to do."""
    return Finding(check, Severity.OK, seen)


def warning(check: str, seen: str, advice: str) -> Finding:
    """Works, but should be checked."""
    return Finding(check, Severity.WARNING, seen, advice)


def problem(check: str, seen: str, advice: str) -> Finding:
    """Jobs are at risk or do not run."""
    return Finding(check, Severity.PROBLEM, seen, advice)

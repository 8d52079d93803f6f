"""What an engine can say of its own health: `perdure doctor` asks, and so may anything that watches a database."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Protocol

from msgspec import Struct


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


class DiagnosisStore(Protocol):
    """How an engine is examined. Works on any database that can be opened, whatever its schema."""

    async def diagnose(self) -> list[Finding]:
        """Look at the library or server, its durability settings, and what makes this engine slow or unsafe."""

    async def waiting(self) -> list[Waiting]:
        """For each queue with ready jobs, the longest wait. Needs a current schema."""


def fine(check: str, seen: str) -> Finding:
    """Nothing to do."""
    return Finding(check, Severity.OK, seen)


def warning(check: str, seen: str, advice: str) -> Finding:
    """Works, and somebody should look at it."""
    return Finding(check, Severity.WARNING, seen, advice)


def problem(check: str, seen: str, advice: str) -> Finding:
    """Jobs are at risk or do not run."""
    return Finding(check, Severity.PROBLEM, seen, advice)

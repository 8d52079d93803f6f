"""Groups of failures: dead jobs and failed attempts with one fingerprint."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final, Protocol

from msgspec import Struct

from perdure.domain.jobs.ids import JobId
from perdure.storage.records import JobFilter

JOBS_COUNTED_PER_GROUP: Final = 10_000
"""The most dead letters of a group that are counted."""

FAILURES_KEPT: Final = timedelta(days=7)
"""Retention of a group's hourly counts, and of a group without dead letters."""


class GroupRecord(Struct, frozen=True, kw_only=True):
    """A stored group, and the number of its dead letters; `capped`: a lower bound.

    `only_newest`: only so many of the newest dead letters that match were read; older ones may have other groups.
    """

    fingerprint: str
    kind: str
    error_type: str
    message: str
    first_at: datetime
    last_at: datetime
    jobs: int
    capped: bool = False
    newest: JobId | None = None  # of its dead letters
    only_newest: int | None = None


class HourOfFailures(Struct, frozen=True):
    """The deaths and failed attempts of a group in one hour; failed attempts include those that were fatal."""

    fingerprint: str
    hour: datetime
    deaths: int
    failures: int


class FailureGroupStore(Protocol):
    """Failures by their fingerprints."""

    async def failure_groups(
        self, which: JobFilter, limit: int, before: tuple[datetime, str] | None = None
    ) -> list[GroupRecord]:
        """The groups of the dead letters that match, the last to fail first, behind one of this time and fingerprint.

        Only dead letters that match are counted. A group that the filter names is listed even without dead letters. If
        the filter asks for more than kinds and fingerprints, or there are very many groups, the newest 10,000 dead
        letters that match are looked at.
        """

    async def failure_hours(self, fingerprints: Sequence[str], since: datetime) -> list[HourOfFailures]:
        """How often these groups have failed in each hour from this one on; hours without are left out."""

    async def fingerprint_dead(self, limit: int) -> int:
        """Write the fingerprint of at most `limit` dead letters that have none; returns their number.

        They died before fingerprints existed, or on a worker of an older release.
        """

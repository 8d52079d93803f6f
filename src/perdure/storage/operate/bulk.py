"""Bulk commands as they are kept: one action on all jobs that match a filter, done in batches.

A bulk command goes once through the jobs that match, from the newest id to the oldest. It begins at the id that was the
newest when it was started, and its cursor only goes down: jobs that are made later are left alone, and one that was
requeued and died again is not met twice. The process that works on it holds a lease with a token, by the database's
clock. Each batch changes its jobs, the cursor and the counts in one transaction, fenced by that token: after a crash
another runner goes on behind the last batch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final, Protocol

import msgspec
from msgspec import Struct

from perdure.domain.jobs.ids import JobId
from perdure.domain.jobs.states import JobState
from perdure.domain.operate.audit import By
from perdure.errors import StoreRefused
from perdure.storage.records import JobFilter

MOST_SAMPLES: Final = 20


class BulkState(StrEnum):
    """How far a bulk command is."""

    RUNNING = "running"
    DONE = "done"
    STOPPED = "stopped"  # by an operator, before its end
    FAILED = "failed"  # it cannot go on: `error` says why


class BulkParams(Struct, frozen=True, kw_only=True):
    """What an action needs besides its jobs. `limit`: at most so many jobs, newest first; None: all that match."""

    mark: str | None = None
    due_at: datetime | None = None
    limit: int | None = None


class BulkSample(Struct, frozen=True):
    """A job that a bulk command skipped, and why."""

    id: JobId
    state: JobState
    why: str


class BulkView(Struct, frozen=True, kw_only=True):
    """A bulk command as it stands.

    `jobs` is the count of the dry run (`capped`: there were at least so many), `seen` how many were looked at since,
    `done` and `skipped` what became of them. `reasons` counts the skipped by reason, `samples` name the first of them.
    """

    id: str
    action: str
    filter: JobFilter
    params: BulkParams
    actor: str
    why: str | None
    source: str | None
    state: BulkState
    jobs: int
    capped: bool
    seen: int
    done: int
    skipped: int
    created_at: datetime
    changed_at: datetime
    finished_at: datetime | None
    error: str | None
    reasons: dict[str, int]
    samples: tuple[BulkSample, ...]

    @property
    def by(self) -> By:
        """On whose behalf its batches act."""
        return By(self.actor, self.why, self.source, self.id)


class NewBulk(Struct, frozen=True, kw_only=True):
    """A bulk command about to start. `cursor`: ids below this one are meant; None: no job matches."""

    id: str
    action: str
    filter: JobFilter
    params: BulkParams
    jobs: int
    capped: bool
    cursor: JobId | None


class BulkHold(Struct, frozen=True):
    """A bulk command that one runner works on. A lower token than the stored one is a hold that was lost."""

    view: BulkView
    token: int
    cursor: JobId | None


class BulkProgress(Struct, frozen=True, kw_only=True):
    """How far a bulk command is after a batch: written with it."""

    cursor: JobId | None
    state: BulkState
    seen: int
    done: int
    skipped: int
    reasons: dict[str, int]
    samples: tuple[BulkSample, ...]
    error: str | None = None


class BulkStore(Protocol):
    """Bulk commands: started, worked on by one runner at a time, stopped, and shown."""

    async def start_bulk(self, new: NewBulk, by: By) -> BulkView:
        """Keep a bulk command, with an entry in the audit trail. ConflictError: there is one of this id."""

    async def take_bulk(self, runner: str, lease: timedelta, bulk_id: str | None = None) -> BulkHold | None:
        """Take up the oldest running bulk command, or this one, unless another runner has its lease; None: none."""

    async def advance_bulk(
        self,
        hold: BulkHold,
        ids: Sequence[JobId],
        lease: timedelta,
        account: Callable[[Sequence[JobId]], BulkProgress],
    ) -> BulkHold | None:
        """Do the action to those of these jobs that still match, and write the progress, in one transaction.

        `account` gets the changed jobs, and returns the progress of the command; it may be called again. An
        end of the command is written to the audit trail. None: the hold was lost, or the command was stopped, and
        nothing was changed.
        """

    async def stop_bulk(self, bulk_id: str, by: By) -> BulkView | None:
        """End a running bulk command after the batch under way; one that has ended stays as it is. None: no such."""

    async def bulk(self, bulk_id: str) -> BulkView | None:
        """One bulk command."""

    async def bulks(self, limit: int) -> list[BulkView]:
        """The newest bulk commands. Those that ended 90 days ago are forgotten by `prune`."""


def read_filter(text: str) -> JobFilter:
    """A filter as it was stored; refused if a newer release stored it with conditions that are unknown here."""
    raw: dict[str, object] = msgspec.json.decode(text)
    if unknown := sorted(raw.keys() - set(JobFilter.__struct_fields__)):
        raise StoreRefused(f"a newer release of perdure filters by {', '.join(unknown)}: continue it there")
    return msgspec.json.decode(text, type=JobFilter)

"""Stored bulk commands: one action on all jobs that match a filter, done in batches.

A bulk command goes once through the jobs that match, from the newest id to the oldest. It begins at the newest id at
its start, and its cursor only goes down: later jobs are not touched, and a job that was requeued and died again is not
processed twice. The process that works on it holds a lease with a token, by the database's clock. Each batch changes
its jobs, the cursor and the counts in one transaction, fenced by that token: after a crash another runner continues
after the last batch.
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

SAMPLES_KEPT: Final = 20


class BulkState(StrEnum):
    """The state of a bulk command."""

    RUNNING = "running"
    DONE = "done"
    STOPPED = "stopped"  # stopped by an operator
    FAILED = "failed"  # it cannot continue: `error` says why


class BulkParams(Struct, frozen=True, kw_only=True):
    """The parameters of an action. `limit`: at most this many jobs, newest first; None: all that match."""

    mark: str | None = None
    due_at: datetime | None = None
    limit: int | None = None


class BulkSample(Struct, frozen=True):
    """A job that a bulk command skipped, and why."""

    id: JobId
    state: JobState
    why: str


class BulkView(Struct, frozen=True, kw_only=True):
    """A bulk command and its progress.

    `jobs` is the count of the dry run (`capped`: a lower bound), `seen` how many were checked since, `done` and
    `skipped` how they ended. `reasons` counts the skipped jobs by reason, `samples` names the first of them.
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
        """The actor of its batches, for the audit trail."""
        return By(self.actor, self.why, self.source, self.id)


class NewBulk(Struct, frozen=True, kw_only=True):
    """A new bulk command. `cursor`: it applies to ids below this one; None: no job matches."""

    id: str
    action: str
    filter: JobFilter
    params: BulkParams
    jobs: int
    capped: bool
    cursor: JobId | None


class BulkHold(Struct, frozen=True):
    """A runner's lease of a bulk command. A token below the stored one means that the lease is lost."""

    view: BulkView
    token: int
    cursor: JobId | None


class BulkProgress(Struct, frozen=True, kw_only=True):
    """The progress of a bulk command after a batch, written with the batch."""

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
        """Store a bulk command, with an entry in the audit trail. ConflictError: the id is taken."""

    async def take_bulk(self, runner: str, lease: timedelta, bulk_id: str | None = None) -> BulkHold | None:
        """Take the lease of the oldest running bulk command, or of this one; None: there is none without a runner."""

    async def advance_bulk(
        self,
        hold: BulkHold,
        ids: Sequence[JobId],
        lease: timedelta,
        account: Callable[[Sequence[JobId]], BulkProgress],
    ) -> BulkHold | None:
        """Apply the action to those of these jobs that still match, and write the progress, in one transaction.

        `account` gets the changed jobs, and returns the progress of the command; it may be called again. An end of the
        command is written to the audit trail. None: the lease was lost or the command was stopped, and nothing was
        changed.
        """

    async def stop_bulk(self, bulk_id: str, by: By) -> BulkView | None:
        """Stop a bulk command after its current batch; an ended one does not change. None: there is no such command."""

    async def bulk(self, bulk_id: str) -> BulkView | None:
        """One bulk command."""

    async def bulks(self, limit: int, before: str | None = None) -> list[BulkView]:
        """The newest bulk commands, or those started before this one; none are before one that is forgotten.

        Those that ended 90 days ago are forgotten by `prune`.
        """


def read_filter(text: str) -> JobFilter:
    """A stored filter; refused if a newer release stored conditions in it that are unknown here."""
    raw: dict[str, object] = msgspec.json.decode(text)
    if unknown := sorted(raw.keys() - set(JobFilter.__struct_fields__)):
        raise StoreRefused(f"a newer release of perdure filters by {', '.join(unknown)}: continue it there")
    return msgspec.json.decode(text, type=JobFilter)

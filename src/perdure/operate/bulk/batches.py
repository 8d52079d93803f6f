"""Runs bulk commands, one batch at a time.

A batch is read without a lock. Then one transaction changes its jobs, the cursor and the counts; the store refuses it
if another runner has taken the command over meanwhile. Between batches only the lease is held.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Final
from uuid import UUID

from msgspec.structs import replace

from perdure.domain.jobs.ids import JobId
from perdure.errors import ArgumentError
from perdure.operate.commands.actions import Action, action_named
from perdure.storage.operate.bulk import (
    SAMPLES_KEPT,
    BulkHold,
    BulkProgress,
    BulkSample,
    BulkState,
    BulkView,
)
from perdure.storage.port import Store
from perdure.storage.records import JobFilter, Page, Reach, Searched

JOBS_PER_BATCH: Final = 200
BATCH_LEASE: Final = timedelta(seconds=30)
_REACH: Final = Reach(50_000, timedelta(seconds=1))  # of one batch: no other query waits longer
_LAST_ID: Final = 2**128 - 1


class BulkBatches:
    """One runner of bulk commands. `runner` is its unique name."""

    def __init__(self, store: Store, runner: str, lease: timedelta = BATCH_LEASE, size: int = JOBS_PER_BATCH) -> None:
        self._store = store
        self._runner = runner
        self._lease = lease
        self._size = size

    async def take(self, bulk_id: str | None = None) -> BulkHold | None:
        """Take a bulk command without a runner, or this one; None: there is none."""
        return await self._store.take_bulk(self._runner, self._lease, bulk_id)

    async def do_next(self, hold: BulkHold) -> BulkHold | None:
        """Run one batch, and return the command. None: it was stopped, or another runner has it."""
        view = hold.view
        try:
            action = action_named(view.action, view.params)
            aim = action.aim(view.filter)
        except ArgumentError as error:
            return await self._fail(hold, str(error))
        room = self._size if view.params.limit is None else min(self._size, view.params.limit - view.seen)
        searched = Searched([])
        if hold.cursor is not None and room > 0:
            searched = await self._store.search(aim, Page(room, hold.cursor), _REACH)
        able = [job for job in searched.jobs if action.can(job)]
        is_last = searched.behind is None and len(searched.jobs) < self._size
        account = _Account(action, hold, searched, is_last=is_last)
        after = await self._store.advance_bulk(hold, [job.id for job in able], self._lease, account.after)
        if after is not None:
            self._store.ring({job.queue for job in able})
        return after

    async def _fail(self, hold: BulkHold, why: str) -> BulkHold | None:
        def account(_: Sequence[JobId]) -> BulkProgress:
            return replace(progress_of(hold), state=BulkState.FAILED, error=why)

        return await self._store.advance_bulk(hold, [], self._lease, account)


class _Account:
    """Counts the outcomes of a batch."""

    def __init__(self, action: Action, hold: BulkHold, searched: Searched, *, is_last: bool) -> None:
        self._action = action
        self._hold = hold
        self._found = searched.jobs
        self._behind = searched.behind
        self._is_last = is_last

    def after(self, done: Sequence[JobId]) -> BulkProgress:
        """The progress after these jobs."""
        before, changed = progress_of(self._hold), set(done)
        left = [
            BulkSample(job.id, job.state, self._action.why_not(job)) for job in self._found if job.id not in changed
        ]
        reasons = dict(before.reasons)
        for sample in left:
            reasons[sample.why] = reasons.get(sample.why, 0) + 1
        return BulkProgress(
            cursor=self._behind or (self._found[-1].id if self._found else before.cursor),
            state=BulkState.DONE if self._is_last else BulkState.RUNNING,
            seen=before.seen + len(self._found),
            done=before.done + len(changed),
            skipped=before.skipped + len(left),
            reasons=reasons,
            samples=(*before.samples, *left)[:SAMPLES_KEPT],
        )


def progress_of(hold: BulkHold) -> BulkProgress:
    """The current progress of a command."""
    view: BulkView = hold.view
    return BulkProgress(
        cursor=hold.cursor,
        state=view.state,
        seen=view.seen,
        done=view.done,
        skipped=view.skipped,
        reasons=view.reasons,
        samples=view.samples,
        error=view.error,
    )


async def first_cursor(store: Store, aim: JobFilter) -> JobId | None:
    """The first cursor of a command: directly after the newest job that matches now; None: none matches."""
    searched = await store.search(aim, Page(1), _REACH)
    if not searched.jobs:
        return searched.behind  # newer jobs do not match
    return JobId(str(UUID(int=min(UUID(searched.jobs[0].id).int + 1, _LAST_ID))))

"""Upkeep of the database."""

from __future__ import annotations

from collections.abc import Callable, Collection
from datetime import datetime, timedelta
from typing import Protocol

from perdure.domain.jobs.ids import JobId, WorkerId
from perdure.domain.jobs.job import Orphan
from perdure.domain.worker import ProcessIdentity, WorkerView
from perdure.storage.records import (
    Keep,
    Overdue,
    Promoted,
)


class UpkeepStore(Protocol):
    """Upkeep; any number of processes may call these at once."""

    async def promote(
        self, limit: int, *, only: JobId | None = None, aside: Collection[JobId] = frozenset()
    ) -> Promoted:
        """Make due parked jobs ready, oldest due first, at most `limit`.

        `only`: this job alone. Jobs `aside` are left unchanged, and `next_due` does not count them. If one job cannot
        be made ready the call fails, and none is.

        One that needs its unique key back while another job holds it stays parked (PAUSED, KEY_HELD) for 30 seconds. A
        job takes its old place in line. One that has none, or has failed, goes before every job that entered the line
        after it was due, and behind those that are due before it.
        """

    async def overdue(
        self, limit: int, by: timedelta = timedelta(0), aside: Collection[JobId] = frozenset()
    ) -> list[Overdue]:
        """Parked jobs that are due since at least `by`: oldest due first, without those `aside`."""

    async def hasten(self, keys: Collection[str]) -> int:
        """Make the first job that waits for each of these unique keys (PAUSED, KEY_HELD) due now; returns how many."""

    async def settle_joined(self, job_ids: Collection[JobId] | None = None) -> int:
        """Count the ends of jobs to which children were joined, and wake the parents whose wait is over.

        Checks these jobs, or all. One that is gone counts as cancelled. Returns how many children were counted.
        """

    async def bury_silent(self, lease: timedelta) -> list[WorkerView]:
        """Declare dead every worker whose last heartbeat is older than `lease` by the database's clock; return them."""

    async def bury_gone(self, host: str, is_alive: Callable[[ProcessIdentity], bool]) -> list[WorkerView]:
        """Declare dead the live workers of this host whose process is gone, as `is_alive` says; return those."""

    async def dead_workers(self) -> frozenset[WorkerId]:
        """All workers that were declared dead, or have retired, and are not pruned yet."""

    async def orphans(self, limit: int, after: JobId | None = None) -> list[Orphan]:
        """Claims of workers that are dead or no longer known, by job id, beyond `after`."""

    async def last_return(self, queue: str) -> datetime | None:
        """When the last of the queue's ramped orphans comes back.

        Those are parked as RETRYING, with the reason CRASHED. None: there are none.
        """

    async def prune(self, keep: Keep, limit: int) -> int:
        """Delete at most `limit` finished jobs whose retention is over, with attempts and all.

        A kind's own declared retention applies, no matter which worker prunes (see KindStore).
        Workers dead for a day are forgotten too, and records of nominal times and of
        bulk commands that are older than 90 days. Jobs that
        are not final are never touched. Old entries of the audit trail go if `keep.audit_trail` says so, at most ten
        times `limit`. Groups of failures that have no dead letters are forgotten a week after they last failed.

        Jobs that ended by a clock which was ahead, and has been set back since, count as ended now; dead ones among
        them hold their unique keys for the intended time.
        """

"""How workers claim jobs and record outcomes."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Protocol

from perdure.domain.jobs.ids import JobId, WorkerId
from perdure.domain.jobs.job import Claim
from perdure.domain.jobs.transition import Transition
from perdure.domain.operate.audit import Audited
from perdure.storage.records import (
    Acknowledged,
    Front,
    Wanted,
)


class ClaimStore(Protocol):
    """How a worker claims jobs and records outcomes."""

    async def claim(self, worker_id: WorkerId, wanted: Sequence[Wanted]) -> list[Claim]:
        """Claim ready jobs for this worker, for each wanted queue: by priority, then by their place in line.

        Wants with a level come first. No job is ever given to two callers. A worker that was declared dead gets
        nothing. Every claim has a token higher than any earlier one of the same job, which no other claim of that job
        has, even one that the database has forgotten because it went back in time.
        """

    async def fronts(self, queues: Sequence[str], depth: int) -> list[Front]:
        """For each priority of these queues the first `depth` ready jobs, in claim order."""

    async def acknowledge(
        self, transitions: Sequence[Transition], audit: Collection[Audited] = frozenset()
    ) -> Acknowledged:
        """Write the outcomes of claims. A transition applies only while its claim (id and token) is still held.

        Others change nothing and come back as stale. The same transaction also writes: an attempt record for each
        failure, the result, and the unique key (taken back, kept for `dead_for`, or released, as the new state says). A
        job that must take its key back while another holds it is PAUSED with KEY_HELD; `promote` checks it again. A job
        whose cancellation was requested and that would come back is CANCELLED instead, with the reason that was given.

        A job that comes back keeps its place in line, unless it has failed (`FAULTS`): then its place follows from its
        new due time.

        A WAITING transition that awaits events or families makes the job READY at once if one of them is there already
        (EVENT_CAME, CHILDREN_SETTLED); one that arrives later wakes the job, once. A child's end is counted in its
        family, once, and wakes the waiting parent if it settles the family. A parent's end cancels children that are
        not final, down to their own, if the family says so: "parent job completed" (or died, cancelled).

        The actions in `audit` are written to the audit trail as done by `system`, in the same transaction.
        """

    async def leases(self, worker_id: WorkerId) -> list[tuple[JobId, int]]:
        """Job and token of all leases under this worker's id."""

    async def claims_held(self, worker_id: WorkerId, job_ids: Sequence[JobId]) -> list[Claim]:
        """The claims of this worker on these jobs, if any."""

    async def checkpoint(self, claim: Claim, cursor: str | None) -> bool:
        """Store the job's checkpoint for its next attempt; False: the claim is lost, and nothing was written."""

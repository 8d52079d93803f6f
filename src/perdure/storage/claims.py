"""How workers take jobs and give them back."""

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
    """How a worker takes jobs and gives them back."""

    async def claim(self, worker_id: WorkerId, wanted: Sequence[Wanted]) -> list[Claim]:
        """Take ready jobs for this worker, queue by queue as wanted: by priority, then by their place in line.

        What is wanted of one level comes first.
        No job is ever handed to two callers. A worker that was declared dead gets nothing. Every claim carries a
        token higher than any earlier one of the same job, which no other claim of that job has, even one that the
        database has forgotten because it went back in time.
        """

    async def fronts(self, queues: Sequence[str], depth: int) -> list[Front]:
        """For each priority of these queues the first `depth` ready jobs, in the order in which they would be taken."""

    async def acknowledge(
        self, transitions: Sequence[Transition], audit: Collection[Audited] = frozenset()
    ) -> Acknowledged:
        """Write what became of claims. A transition applies only while its claim (id and token) is still held.

        Others change nothing and come back as stale. Together with the move go, in the same transaction: an attempt
        record for each failure, the result, and the unique key (taken back, kept for `dead_for`, or let go, as the
        new state says). A job that must take its key back while another holds it is PAUSED with KEY_HELD and looked
        at again by `promote`. A job that somebody wants called off and that would come back is CANCELLED instead, with
        the reason that was given for it.

        A job that comes back keeps its place in line, unless it has failed (`FAULTS`): then its place is that of the
        time at which it is due again.

        A WAITING transition that awaits events or families makes the job READY at once if one of them is there already
        (EVENT_CAME, CHILDREN_SETTLED); whoever brings one later wakes the job, once. A child's end is counted in its
        family, once, and wakes the parent that waits for it if the family is settled by it. A parent's end cancels
        children that are not final, down to their own, where the family says so: "parent job completed" (or died,
        cancelled).

        What is named in `audit` is written to the audit trail as done by `system`, in the same transaction.
        """

    async def leases(self, worker_id: WorkerId) -> list[tuple[JobId, int]]:
        """Job and token of all that stands under this worker's id."""

    async def claims_held(self, worker_id: WorkerId, job_ids: Sequence[JobId]) -> list[Claim]:
        """The claims of this worker on these jobs, as far as there are any."""

    async def checkpoint(self, claim: Claim, cursor: str | None) -> bool:
        """Keep how far the job has come, for its next attempt; False: the claim is lost, and nothing was written."""

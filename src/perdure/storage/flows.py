"""What an engine does for flows: steps, children, events, progress, log lines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from perdure.domain.flows.flow import Child, Emission, FamilyView, NewFamily, Progress, StepRecord, StepWrite
from perdure.domain.jobs.ids import JobId
from perdure.domain.jobs.job import Claim
from perdure.domain.jobs.log_lines import LINES_KEPT, LogLine, NewLine


class FlowStore(Protocol):
    """What a job has done, what it waits for, and whom it has spawned."""

    async def steps(self, job_ids: Sequence[JobId]) -> dict[JobId, list[StepRecord]]:
        """The steps of these jobs, in the order in which they were begun; a job without any is left out."""

    async def save_steps(self, writes: Sequence[StepWrite]) -> list[bool]:
        """Keep steps, each new or in place of the one of its key, all in one transaction.

        Answers in the same order: False for one whose claim is lost; it was not written. One that is DONE or GIVEN_UP
        already is never written over: True, and it stays.
        """

    async def spawn(self, claim: Claim, family: NewFamily) -> bool:
        """Insert the children of one key together with the family, once: a second time changes nothing.

        False: the claim is lost (the parent was deleted, cancelled or rescued), and nothing was written. A child's id
        that is taken already raises ConflictError. A child whose unique key is held by another job follows its
        on_conflict: it is *joined* to that job, which counts in the family as it ends, or DuplicateJobError is raised.
        To join a job that waits for this parent raises StepError. Whatever is raised, nothing was written.
        """

    async def planned(self, job_id: JobId, number: int) -> str | None:
        """One of the documents that are kept beside a job (`NewJob.plan`), counting from 0; None: there is none."""

    async def family(self, parent: JobId, key: str) -> FamilyView | None:
        """How far the children of one key are."""

    async def families(self, parent: JobId) -> list[FamilyView]:
        """All the families of a job, in the order in which they were made."""

    async def children(self, parent: JobId, key: str, first: int = 0, limit: int = 1_000) -> list[Child]:
        """The children of one key in their order, from the number `first` on."""

    async def emit(self, event: str, payload: str | None, actor: str) -> Emission:
        """Make an event known and wake who waits for it, in one transaction. The first payload is kept for good."""

    async def emitted(self, event: str) -> Emission | None:
        """An event that was emitted; None: nobody has."""

    async def save_progress(self, progress: Mapping[JobId, tuple[Claim, Progress]]) -> None:
        """Show how far running jobs are; those whose claim is lost are left out."""

    async def progress(self, job_id: JobId) -> Progress | None:
        """How far a job was when it last said so."""

    async def save_lines(self, lines: Sequence[NewLine], keep: int = LINES_KEPT) -> None:
        """Keep log lines of running jobs in their order; those whose claim is lost are left out.

        Of each job that gets new ones the newest `keep` stay. Longer lines are cut, see `LONGEST_LINE`.
        """

    async def lines(self, job_id: JobId, limit: int = LINES_KEPT, after: int = 0) -> list[LogLine]:
        """The newest `limit` lines of a job whose number is above `after`, the oldest of them first."""

"""What an engine does for flows: steps, children, events, progress, log lines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from perdure.domain.flows.flow import Child, Emission, FamilyView, NewFamily, Progress, StepRecord, StepWrite
from perdure.domain.jobs.ids import JobId
from perdure.domain.jobs.job import Claim
from perdure.domain.jobs.log_lines import LINES_KEPT, LogLine, NewLine
from perdure.domain.operate.audit import By, Note


class FlowStore(Protocol):
    """The steps of a job, what it waits for, and the jobs it has spawned."""

    async def steps(self, job_ids: Sequence[JobId]) -> dict[JobId, list[StepRecord]]:
        """The steps of these jobs, in the order in which they began; a job without any is left out."""

    async def save_steps(self, writes: Sequence[StepWrite]) -> list[bool]:
        """Store steps, each new or replacing the one of its key, all in one transaction.

        Answers in the same order: False for one whose claim is lost; it was not written. One that is DONE or GIVEN_UP
        already is never overwritten: True, and it stays.
        """

    async def spawn(self, claim: Claim, family: NewFamily) -> bool:
        """Insert the children of one key together with the family, once: a second call changes nothing.

        False: the claim is lost (the parent was deleted, cancelled or rescued), and nothing was written. A child's id
        that is already taken raises ConflictError. A child whose unique key is held by another job follows its
        on_conflict: it is *joined* to that job, which counts in the family when it ends, or DuplicateJobError is
        raised. Joining a job that waits for this parent raises StepError. If an error is raised, nothing was written.
        """

    async def planned(self, job_id: JobId, number: int) -> str | None:
        """One of the documents stored beside a job (`NewJob.plan`), starting at 0; None: there is none."""

    async def family(self, parent: JobId, key: str) -> FamilyView | None:
        """The status of the children of one key."""

    async def families(self, parent: JobId) -> list[FamilyView]:
        """All families of a job, in the order in which they were made."""

    async def children(self, parent: JobId, key: str, first: int = 0, limit: int = 1_000) -> list[Child]:
        """The children of one key in order, from the number `first` on."""

    async def fates(self, parent: JobId, key: str, limit: int = 1_000) -> list[Child]:
        """The first children of one key without results, errors and warnings: for pictures of many."""

    async def emit(self, event: str, payload: str | None, by: By, note: Note | None = None) -> Emission:
        """Emit an event and wake the jobs waiting for it, in one transaction. The first payload is kept for good.

        `note` goes to the audit trail if this was the first emission; without one nothing does.
        """

    async def emitted(self, event: str) -> Emission | None:
        """An emitted event; None: it was not emitted."""

    async def asking(self, limit: int, before: JobId | None = None) -> list[JobId]:
        """Jobs that wait for the answer to a question (`ctx.approval`), newest first; one may have moved on since.

        Jobs that wait for anything else are not looked at. The next page is `before` the last of this one.
        """

    async def save_progress(self, progress: Mapping[JobId, tuple[Claim, Progress]]) -> None:
        """Store the progress of running jobs; those whose claim is lost are left out."""

    async def progress(self, job_id: JobId) -> Progress | None:
        """The last progress that a job reported."""

    async def save_lines(self, lines: Sequence[NewLine], keep: int = LINES_KEPT) -> None:
        """Store log lines of running jobs in order; those whose claim is lost are left out.

        The newest `keep` lines of each such job stay. Longer lines are cut, see `LINE_LIMIT_CHARACTERS`.
        """

    async def lines(self, job_id: JobId, limit: int = LINES_KEPT, after: int = 0) -> list[LogLine]:
        """The newest `limit` lines of a job whose number is above `after`, the oldest of them first."""

"""Queries about jobs."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from perdure.domain.gate import Cost
from perdure.domain.gate_record import GateRecord
from perdure.domain.jobs.ids import JobId
from perdure.domain.jobs.job import Attempt, JobView
from perdure.storage.records import (
    Count,
    JobFilter,
    Page,
    Reach,
    Searched,
    Tally,
)


class InsightStore(Protocol):
    """Queries about jobs."""

    async def now(self) -> datetime:
        """The database's clock."""

    async def job(self, job_id: JobId) -> JobView | None:
        """One job, in any place."""

    async def jobs(self, which: JobFilter, page: Page) -> list[JobView]:
        """The jobs that match, newest (highest id) first."""

    async def search(self, which: JobFilter, page: Page, reach: Reach) -> Searched:
        """The same as `jobs`, within this reach.

        A page that is not full, with `behind` None, is the last one.
        """

    async def attempts(self, job_id: JobId) -> list[Attempt]:
        """The attempts of a job that did not succeed, oldest first, including those before a requeue."""

    async def costs(self, job_id: JobId) -> list[Cost]:
        """What a job has spent from each budget, while that counts."""

    async def gate_records(self, job_id: JobId) -> list[GateRecord]:
        """The gates that the attempts of a job have met, oldest first: one record for each attempt that met any.

        Every engine keeps the text in a claim's `gates` with its acknowledgement: with the record of a failed attempt,
        with the end of the job, or, for a job that comes back, for its next claim.
        """

    async def key_holder(self, key: str) -> JobId | None:
        """The job that holds a unique key now; None: it is free."""

    async def counts(self, cap: int = 10_000) -> list[Count]:
        """Counts of jobs by queue and state, at most `cap` for each."""

    async def count(self, which: JobFilter, by: Sequence[str] = (), cap: int = 10_000) -> list[Tally]:
        """How many jobs match: one tally, or one for each group by "kind", "state" and "queue", as named.

        At most `cap` jobs are read in each queue and state, the last to finish first; with `mark` or `ids`, at most
        `cap` in all. A tally that may be larger for that reason is `capped`.
        """

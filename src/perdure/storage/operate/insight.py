"""What can be seen from outside."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from perdure.domain.gate import Cost
from perdure.domain.jobs.ids import JobId
from perdure.domain.jobs.job import Attempt, JobView
from perdure.storage.records import (
    Count,
    JobFilter,
    Page,
    Tally,
)


class InsightStore(Protocol):
    """What can be seen from outside."""

    async def now(self) -> datetime:
        """The database's clock."""

    async def job(self, job_id: JobId) -> JobView | None:
        """One job, wherever it stands."""

    async def jobs(self, which: JobFilter, page: Page) -> list[JobView]:
        """The jobs that match, newest (highest id) first."""

    async def attempts(self, job_id: JobId) -> list[Attempt]:
        """The attempts of a job that did not succeed, oldest first, over all its lives."""

    async def costs(self, job_id: JobId) -> list[Cost]:
        """What a job has spent from each budget, as long as that counts for one."""

    async def key_holder(self, key: str) -> JobId | None:
        """The job that holds a unique key now; None: it is free."""

    async def counts(self, cap: int = 10_000) -> list[Count]:
        """How many jobs stand where, at most `cap` counted for each queue and state."""

    async def count(self, which: JobFilter, by: Sequence[str] = (), cap: int = 10_000) -> list[Tally]:
        """How many jobs match: one tally, or one for each group by "kind", "state" and "queue", as far as named.

        At most `cap` jobs are looked at in each queue and state, the last to finish first; with `mark` or `ids`, at
        most `cap` in all. A tally that may be larger for that is `capped`.
        """

"""The progress of running jobs, as they report it."""

from __future__ import annotations

from collections.abc import Mapping

from perdure.domain.flows.flow import Progress
from perdure.domain.jobs.ids import JobId
from perdure.domain.jobs.job import Claim
from perdure.engines.postgres.database.arrays import number_array, storable_array, text_array
from perdure.engines.postgres.database.connections import Pool
from perdure.engines.postgres.database.encoding import moment_text
from perdure.engines.postgres.database.naming import Naming
from perdure.engines.postgres.database.wire import Params


class ProgressPart:
    """Stores the last progress report of each job."""

    def __init__(self, naming: Naming, pool: Pool) -> None:
        self._statements = naming.statements("flows/progress.sql")
        self._pool = pool

    async def save_progress(self, progress: Mapping[JobId, tuple[Claim, Progress]]) -> None:
        """Store the progress of running jobs; those whose claim is lost are left out."""
        if not progress:
            return
        claims, words = zip(*(progress[job_id] for job_id in sorted(progress)), strict=True)
        params: Params = {
            "ids": text_array([claim.job_id for claim in claims]),
            "tokens": number_array([claim.token for claim in claims]),
            "currents": number_array([word.current for word in words]),
            "totals": number_array([word.total for word in words]),
            "notes": storable_array([word.note for word in words]),
            "ats": text_array([moment_text(word.at) for word in words]),
        }
        await self._pool.rows(self._statements["save_progress"], params)

    async def progress(self, job_id: JobId) -> Progress | None:
        """The last progress that a job reported."""
        rows = await self._pool.rows(self._statements["progress"], {"id": job_id})
        if not rows:
            return None
        current, total, note, at = rows[0]
        return Progress(current=current, total=total, note=note, at=at)

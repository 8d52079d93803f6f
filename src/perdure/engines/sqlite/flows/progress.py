"""The progress of running jobs, as they report it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from perdure.domain.flows.flow import Progress
from perdure.domain.jobs.ids import JobId
from perdure.domain.jobs.job import Claim
from perdure.engines.shared.database.instants import from_micros, to_micros
from perdure.engines.sqlite.database.database import Database
from perdure.engines.sqlite.database.rows import clean, to_document
from perdure.errors import ArgumentError


class ProgressPart:
    """Progress of the store's jobs."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._sql = database.statements("flows/progress.sql")

    async def save_progress(self, progress: Mapping[JobId, tuple[Claim, Progress]]) -> None:
        """Store the progress of jobs whose claims are held, all in one statement."""
        if not progress:
            return
        rows = to_document([_row(claim, shown) for claim, shown in progress.values()])
        await self._database.write(lambda transaction: transaction.change(self._sql["save"], {"rows": rows}))

    async def progress(self, job_id: JobId) -> Progress | None:
        """The last progress that a job reported."""
        params = {"job_id": job_id}
        rows = await self._database.read(lambda transaction: transaction.run(self._sql["progress"], params))
        if not rows:
            return None
        ((current, total, note, at),) = rows
        return Progress(current=current, total=total, note=note, at=from_micros(at))


def _row(claim: Claim, shown: Progress) -> tuple[Any, ...]:
    for field, number in (("current", shown.current), ("total", shown.total)):
        if number is not None and not math.isfinite(number):
            raise ArgumentError(field, f"must be a finite number, got {number}")
    note = None if shown.note is None else clean(shown.note)
    return (claim.job_id, claim.token, shown.current, shown.total, note, to_micros(shown.at))

"""Steps in memory, for tests of what writes and reads them: counts its calls, and fails as it is told to."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

from perdure.domain.flows.flow import Progress, StepRecord, StepWrite
from perdure.domain.jobs.ids import JobId
from perdure.domain.jobs.job import Claim


class FlowStoreInMemory:
    """The part of a store that a recorder needs."""

    def __init__(self) -> None:
        self.kept: dict[JobId, dict[str, StepRecord]] = {}
        self.shown: dict[JobId, Progress] = {}
        self.saves: list[int] = []
        self.loads: list[int] = []
        self.lost: set[JobId] = set()
        self.troubles: list[Exception] = []
        self.refused: dict[str, Exception] = {}

    async def steps(self, job_ids: Sequence[JobId]) -> dict[JobId, list[StepRecord]]:
        """The steps of these jobs."""
        await self._travel()
        self.loads.append(len(job_ids))
        return {job_id: list(self.kept[job_id].values()) for job_id in job_ids if job_id in self.kept}

    async def save_steps(self, writes: Sequence[StepWrite]) -> list[bool]:
        """Keep steps, all or none."""
        await self._travel()
        for write in writes:
            if write.step.key in self.refused:
                raise self.refused[write.step.key]
        self.saves.append(len(writes))
        for write in writes:
            if write.claim.job_id not in self.lost:
                self.kept.setdefault(write.claim.job_id, {})[write.step.key] = write.step
        return [write.claim.job_id not in self.lost for write in writes]

    async def save_progress(self, progress: Mapping[JobId, tuple[Claim, Progress]]) -> None:
        """Show progress."""
        await self._travel()
        self.shown |= {job_id: word for job_id, (_, word) in progress.items()}

    async def _travel(self) -> None:
        await asyncio.sleep(0)
        if self.troubles:
            raise self.troubles.pop(0)

"""Checkpoints of many handlers at once share a commit.

A checkpoint that arrives during a write waits for it, and is written together with all that wait: one handler
pays one commit, and a thousand that are told to stop pay two or three.
"""

from __future__ import annotations

import asyncio
from typing import Final

from msgspec import Struct

from perdure.domain.jobs.job import Claim
from perdure.engines.postgres.database.arrays import number_array, text_array
from perdure.engines.postgres.database.connections import Pool
from perdure.engines.postgres.database.naming import Naming
from perdure.errors import StoreUnavailable

_CHECKPOINTS_PER_CALL: Final = 500


class _Request(Struct, eq=False):
    claim: Claim
    cursor: str | None
    answers: list[asyncio.Future[bool]]


class Checkpoints:
    """Stores the checkpoints of jobs."""

    def __init__(self, naming: Naming, pool: Pool) -> None:
        self._statement = naming.statements("claims/acknowledgements.sql")["checkpoint"]
        self._pool = pool
        self._waiting: dict[tuple[str, int], _Request] = {}
        self._writing: asyncio.Task[None] | None = None

    async def checkpoint(self, claim: Claim, cursor: str | None) -> bool:
        """Store the job's checkpoint; False: the claim is lost, and nothing was written."""
        answer: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        request = self._waiting.setdefault((claim.job_id, claim.token), _Request(claim, cursor, []))
        request.cursor = cursor  # of two for one job the later one counts
        request.answers.append(answer)
        if self._writing is None:
            self._writing = asyncio.get_running_loop().create_task(self._write_all())
        return await answer

    async def _write_all(self) -> None:
        try:
            while self._waiting:
                batch = [self._waiting.pop(key) for key in sorted(self._waiting)[:_CHECKPOINTS_PER_CALL]]
                await self._write_or_fail(batch)
        finally:
            self._writing = None

    async def _write_or_fail(self, batch: list[_Request]) -> None:
        try:
            await self._write(batch)
        except Exception as error:  # noqa: BLE001 - it is raised to those who wait
            if len(batch) == 1 or isinstance(error, StoreUnavailable):
                for answer in (answer for request in batch for answer in request.answers if not answer.done()):
                    answer.set_exception(error)
            else:  # it may concern one of them alone
                for request in batch:
                    await self._write_or_fail([request])

    async def _write(self, batch: list[_Request]) -> None:
        """In the order of ids, as acknowledgements are, to avoid deadlocks."""
        params = {
            "ids": text_array([request.claim.job_id for request in batch]),
            "tokens": number_array([request.claim.token for request in batch]),
            "cursors": text_array([request.cursor for request in batch]),
        }
        kept = {(job_id, token) for job_id, token in await self._pool.rows(self._statement, params)}
        for request in batch:
            for answer in request.answers:
                if not answer.done():
                    answer.set_result((request.claim.job_id, request.claim.token) in kept)

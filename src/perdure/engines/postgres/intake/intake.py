"""Intake: stores new jobs on the store's own connections."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import datetime
from typing import Final

from psycopg.errors import UniqueViolation

from perdure.clock import Clock
from perdure.domain.jobs.ids import JobId
from perdure.domain.jobs.job import Intake, NewJob, Receipt
from perdure.engines.postgres.database.connections import Pool
from perdure.engines.postgres.database.encoding import (
    Texts,
    encode_one,
    encode_plain,
)
from perdure.engines.postgres.database.naming import Naming
from perdure.engines.postgres.database.wire import Asks, Statement, Wire
from perdure.engines.postgres.fleet.signals import SignalPart
from perdure.engines.postgres.intake.insertion import (
    are_light,
    follow,
    is_simple,
    needs_transaction,
    plan_insert,
    read_plain,
)
from perdure.storage.supply import Supply

_JOBS_BEFORE_STREAMING: Final = 2_500
_UNLESS_KNOWN: Final = "ON CONFLICT (id) DO NOTHING"


class IntakePart:
    """The plan, run on the store's own connections."""

    def __init__(self, naming: Naming, pool: Pool, clock: Clock | None, signals: SignalPart) -> None:
        self._statements = naming.statements("intake/intake.sql")
        self._for_new_ids = self._statements["insert_plain"].replace(_UNLESS_KNOWN, "")
        self._pool = pool
        self._clock = clock
        self._signals = signals

    async def insert(self, jobs: Sequence[NewJob]) -> list[Receipt]:
        """Store all these jobs in one transaction and answer in their order.

        If perdure made all ids, they are assumed to be new, which saves the server a fifth of its work. If one exists
        after all (a try with a lost answer was committed, or a call is given twice), nothing has happened, and the
        batch is inserted with checks.
        """
        try:
            return await self._insert(jobs, self._for_new_ids)
        except _KnownIdError:
            return await self._insert(jobs, self._statements["insert_plain"])

    async def _insert(self, jobs: Sequence[NewJob], plainly: str) -> list[Receipt]:
        if isinstance(jobs, Supply) and jobs.up_to(_JOBS_BEFORE_STREAMING) == _JOBS_BEFORE_STREAMING:
            return await self._pool.transaction(lambda wire: self._insert_supply(wire, jobs, plainly))
        if not jobs:
            return []
        if needs_transaction(jobs):
            return await self._pool.transaction(lambda wire: self.insert_within(wire, jobs))
        if len(jobs) > 1:
            params = encode_plain(jobs, self._now())
            return await self._pool.run(lambda wire: self._insert_plain(wire, jobs, plainly, params))
        if is_simple(jobs[0]) and (ring := self._signals.ring_along(jobs[0].queue)):
            return await self._insert_ringing(jobs[0], ring)
        return await self._pool.run(lambda wire: self.insert_within(wire, jobs))

    async def _insert_ringing(self, job: NewJob, ring: Statement) -> list[Receipt]:
        """Store one job and notify the workers in the same round trip."""
        statement = self._statements["insert_one"], encode_one(job, self._now(), None)
        rows = await self._pool.run(lambda wire: wire.fetch_and_post(statement, ring))
        self._signals.rang_along(job.queue)
        return [Receipt(job.id, Intake.NEW if rows else Intake.EXISTING)]

    async def insert_within(
        self, wire: Asks, jobs: Sequence[NewJob], *, beside_holder: bool = False, parent: JobId | None = None
    ) -> list[Receipt]:
        """The same in a transaction that is open; `beside_holder` and `parent`: see `plan_insert`."""
        if not jobs:
            return []
        plan = plan_insert(self._statements, jobs, self._now(), beside_holder=beside_holder, parent=parent)
        return await follow(plan, wire.fetch, asyncio.sleep)

    def _now(self) -> datetime | None:
        return self._clock.now() if self._clock else None

    async def _insert_supply(self, wire: Wire, jobs: Supply, plainly: str) -> list[Receipt]:
        """Make and encode the next jobs while the server works on these."""
        receipts: list[Receipt] = []
        chunk, params = self._next_chunk(jobs, 0)
        while chunk:
            writing = asyncio.create_task(self._write_chunk(wire, chunk, plainly, params))
            try:
                await asyncio.sleep(0)  # it is on its way
                chunk, params = self._next_chunk(jobs, len(receipts) + len(chunk))
            except BaseException:  # it is all over, however the writing ends: a source that has failed gives no more
                await asyncio.gather(writing, return_exceptions=True)
                raise
            receipts += await writing
        return receipts

    def _next_chunk(self, jobs: Supply, start: int) -> tuple[list[NewJob], Texts | None]:
        chunk = jobs[start : start + _JOBS_BEFORE_STREAMING]
        short = chunk and are_light(chunk) and all(map(is_simple, chunk))
        return chunk, encode_plain(chunk, self._now()) if short else None

    async def _write_chunk(self, wire: Wire, chunk: list[NewJob], plainly: str, params: Texts | None) -> list[Receipt]:
        if params is None:
            return await self.insert_within(wire, chunk)
        return await self._insert_plain(wire, chunk, plainly, params)

    async def _insert_plain(self, wire: Wire, jobs: Sequence[NewJob], plainly: str, params: Texts) -> list[Receipt]:
        try:
            rows = await wire.fetch(plainly, params)
        except UniqueViolation as error:
            if plainly != self._for_new_ids:
                raise
            raise _KnownIdError from error
        return read_plain(jobs, rows)


class _KnownIdError(Exception):
    """An id that was taken for new is not."""

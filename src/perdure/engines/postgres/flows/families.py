"""Parents and children: how they are spawned, and how far they are.

`settling` handles their ends.
"""

from __future__ import annotations

from functools import partial

from perdure.clock import Clock
from perdure.domain.flows.flow import Child, FamilyView, NewFamily, OnEnd
from perdure.domain.jobs.ids import JobId
from perdure.domain.jobs.job import Claim
from perdure.domain.jobs.states import JobState
from perdure.domain.stored_words import read_word
from perdure.engines.postgres.database.arrays import text_array
from perdure.engines.postgres.database.connections import Pool
from perdure.engines.postgres.database.encoding import storable_text
from perdure.engines.postgres.database.naming import Naming
from perdure.engines.postgres.database.rows import Row, texts_of
from perdure.engines.postgres.database.wire import Asks, Params, Wire
from perdure.engines.postgres.intake.intake import IntakePart
from perdure.engines.shared.joins import in_a_circle, joined_by


class FamilyPart:
    """Spawns children, and shows them."""

    def __init__(self, naming: Naming, pool: Pool, clock: Clock | None, intake: IntakePart, desk: Pool) -> None:
        self._statements = naming.statements("flows/families.sql")
        self._pool = pool
        self._clock = clock
        self._intake = intake
        self._desk = desk

    async def spawn(self, claim: Claim, family: NewFamily) -> bool:
        """Insert the children of one key together with the family, once; False: the claim is lost."""
        return await self._pool.transaction(partial(self._spawn, claim, family))

    async def planned(self, job_id: JobId, number: int) -> str | None:
        """One of the documents stored beside a job."""
        rows = await self._pool.rows(self._statements["planned"], {"id": job_id, "number": number})
        return rows[0][0] if rows else None

    async def family(self, parent: JobId, key: str) -> FamilyView | None:
        """The status of the children of one key."""
        rows = await self._pool.rows(self._statements["family"], {"id": parent, "key": key})
        return _family_of(rows[0]) if rows else None

    async def families(self, parent: JobId) -> list[FamilyView]:
        """All families of a job, in the order in which they were made."""
        return [_family_of(row) for row in await self._desk.rows(self._statements["families"], {"id": parent})]

    async def children(self, parent: JobId, key: str, first: int = 0, limit: int = 1_000) -> list[Child]:
        """The children of one key in order, from the number `first` on."""
        params: Params = {"id": parent, "key": key, "first": first, "limit": limit}
        return [_child_of(row) for row in await self._pool.rows(self._statements["children"], params)]

    async def fates(self, parent: JobId, key: str, limit: int = 1_000) -> list[Child]:
        """The first children of one key without results, errors and warnings: for pictures of many."""
        params: Params = {"id": parent, "key": key, "limit": limit}
        rows = await self._pool.rows(self._statements["fates"], params)
        return [_child_of((*row, None, None, None, joined)) for *row, joined in rows]

    async def _spawn(self, claim: Claim, family: NewFamily, wire: Wire) -> bool:
        params: Params = {"id": claim.job_id, "token": claim.token, "key": storable_text("key", family.key)}
        if not await wire.fetch(self._statements["hold"], params):
            return False
        if not await wire.fetch(self._statements["family"], params):
            await self.make(wire, claim.job_id, family)
        return True

    async def make(self, wire: Asks, parent: JobId, family: NewFamily) -> None:
        """Insert children together with their family, which does not exist yet."""
        receipts = await self._intake.insert_within(wire, family.children, parent=parent)
        if joins := joined_by(family, receipts):
            await self._join(wire, parent, family, joins)
        params: Params = {
            "id": parent,
            "key": storable_text("key", family.key),
            "total": len(family.children),
            "quorum": family.quorum,
            "on_end": family.on_end.value,
            "children": text_array([job.id for job in family.children]),
            "kinds": text_array([job.kind for job in family.children]),
            "cursor": family.cursor,
            "next_link": family.next_link,
            "now": self._clock.now() if self._clock else None,
        }
        await wire.fetch(self._statements["make"], params)

    async def _join(self, wire: Asks, parent: JobId, family: NewFamily, joins: dict[JobId, JobId]) -> None:
        """One after the other, so that no two parents come to wait for each other without seeing it."""
        await wire.fetch(self._statements["take_turns"])
        holders = text_array(sorted(set(joins.values())))
        if waiting := await wire.fetch(self._statements["waits_for"], {"id": parent, "ids": holders}):
            raise in_a_circle(family, joins, JobId(waiting[0][0]))
        params: Params = {"id": parent, "children": text_array(list(joins)), "jobs": text_array(list(joins.values()))}
        await wire.fetch(self._statements["join"], params)


def _family_of(row: Row) -> FamilyView:
    key, total, succeeded, failed, quorum, on_end = row
    return FamilyView(key=key, total=total, succeeded=succeeded, failed=failed, quorum=quorum, on_end=OnEnd(on_end))


def _child_of(row: Row) -> Child:
    number, job_id, kind, fate, result, error, warnings, joined = row
    return Child(
        number=number,
        job_id=JobId(job_id),
        kind=kind,
        fate=None if fate is None else read_word(JobState, fate),
        result=result,
        error=error,
        warnings=texts_of(warnings),
        joined=joined,
    )

"""The jobs that a job has spawned, under one key each time."""

from __future__ import annotations

from collections.abc import Sequence

from perdure.domain.flows.flow import Child, FamilyView, NewFamily, OnEnd
from perdure.domain.jobs.ids import JobId
from perdure.domain.jobs.job import Claim
from perdure.domain.jobs.states import JobState
from perdure.domain.stored_words import read_word
from perdure.engines.shared.joins import in_a_circle, joined_by
from perdure.engines.sqlite.database.database import Database
from perdure.engines.sqlite.database.rows import from_document, texts, to_document
from perdure.engines.sqlite.database.transaction import Transaction
from perdure.engines.sqlite.intake.insertion import check_text
from perdure.engines.sqlite.intake.intake import IntakePart


class FamilyPart:
    """Parents and children of the store."""

    def __init__(self, database: Database, intake: IntakePart) -> None:
        self._database = database
        self._intake = intake
        self._sql = database.statements("flows/families.sql")

    async def spawn(self, claim: Claim, family: NewFamily) -> bool:
        """Insert children together with their family, once, while the parent's claim is held."""
        check_text("key", family.key)
        return await self._database.write(lambda transaction: self._spawn(transaction, claim, family))

    async def planned(self, job_id: JobId, number: int) -> str | None:
        """One of the documents stored beside a job."""
        params = {"job_id": job_id, "number": number}
        rows = await self._database.read(lambda transaction: transaction.run(self._sql["planned"], params))
        return rows[0][0] if rows else None

    async def family(self, parent: JobId, key: str) -> FamilyView | None:
        """The status of the children of one key."""
        params = {"parent_id": parent, "key": key}
        rows = await self._database.read(lambda transaction: transaction.run(self._sql["family"], params))
        return family_of(*rows[0]) if rows else None

    async def families(self, parent: JobId) -> list[FamilyView]:
        """All families of a job, in the order in which they were made."""
        params = {"parent_id": parent}
        rows = await self._database.read(lambda transaction: transaction.run(self._sql["families"], params))
        return [family_of(*columns) for _, *columns in sorted(rows)]

    async def children(self, parent: JobId, key: str, first: int = 0, limit: int = 1_000) -> list[Child]:
        """The children of one key in order, from the number `first` on."""
        params = {"parent_id": parent, "key": key, "first": first, "limit": limit}

        def look(transaction: Transaction) -> list[Child]:
            ((document,),) = transaction.run(self._sql["children"], params)
            return [_child(*row) for row in from_document(document)]

        return await self._database.read(look)

    async def fates(self, parent: JobId, key: str, limit: int = 1_000) -> list[Child]:
        """The first children of one key without results, errors and warnings: for pictures of many."""
        params = {"parent_id": parent, "key": key, "limit": limit}

        def look(transaction: Transaction) -> list[Child]:
            rows = transaction.run(self._sql["fates"], params)
            return [
                _child(number, job_id, kind, fate, None, None, None, joined)
                for number, job_id, kind, fate, joined in rows
            ]

        return await self._database.read(look)

    def settled(self, transaction: Transaction, families: Sequence[tuple[JobId, str]]) -> set[tuple[JobId, str]]:
        """Those of these families that leave their parent nothing to wait for; one that was never made is settled."""
        rows = transaction.run(self._sql["several"], {"rows": to_document(families)})
        unsettled = {(parent, columns[0]) for parent, *columns in rows if not family_of(*columns).is_settled}
        return set(families) - unsettled

    def _spawn(self, transaction: Transaction, claim: Claim, family: NewFamily) -> bool:
        if not transaction.run(self._sql["is_held"], {"job_id": claim.job_id, "token": claim.token}):
            return False
        if not transaction.run(self._sql["family"], {"parent_id": claim.job_id, "key": family.key}):
            self.make(transaction, claim.job_id, family)
        return True

    def make(self, transaction: Transaction, parent: JobId, family: NewFamily) -> None:
        """Insert children together with their family, which does not exist yet."""
        name = {"parent_id": parent, "key": family.key}
        receipts = self._intake.insert_within(transaction, family.children)
        if joins := joined_by(family, receipts):
            self._join(transaction, parent, family, joins)
        rows = to_document([(job.id, job.kind) for job in family.children])
        made = {"turn": transaction.numbers(1), "total": len(family.children), "now": transaction.now}
        terms = {"quorum": family.quorum, "on_end": family.on_end, "next_link": family.next_link}
        transaction.change(self._sql["add_family"], name | made | terms)
        transaction.change(self._sql["add_children"], name | {"rows": rows})
        transaction.change(self._sql["note_parent"], {"parent_id": parent, "rows": rows})
        transaction.change(self._sql["note_is_parent"], {"parent_id": parent, "cursor": family.cursor})

    def _join(self, transaction: Transaction, parent: JobId, family: NewFamily, joins: dict[JobId, JobId]) -> None:
        ids = to_document(sorted(set(joins.values())))
        if waiting := transaction.run(self._sql["waits_for"], {"parent_id": parent, "ids": ids}):
            raise in_a_circle(family, joins, waiting[0][0])
        rows = to_document(list(joins.items()))
        transaction.change(self._sql["join"], {"parent_id": parent, "rows": rows})


def family_of(key: str, total: int, succeeded: int, failed: int, quorum: int | None, on_end: str) -> FamilyView:
    """A family from its columns."""
    return FamilyView(key=key, total=total, succeeded=succeeded, failed=failed, quorum=quorum, on_end=OnEnd(on_end))


def _child(
    number: int,
    job_id: JobId,
    kind: str,
    fate: str | None,
    result: str | None,
    error: str | None,
    warnings: str | None,
    joined: int,
) -> Child:
    return Child(
        number=number,
        job_id=job_id,
        kind=kind,
        fate=None if fate is None else read_word(JobState, fate),
        result=result,
        error=error,
        warnings=texts(warnings),
        joined=bool(joined),
    )

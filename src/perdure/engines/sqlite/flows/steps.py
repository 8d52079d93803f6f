"""Steps: completed work, so that it is not repeated (E3)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from perdure.domain.flows.flow import StepKind, StepRecord, StepState, StepWrite
from perdure.domain.jobs.ids import JobId
from perdure.engines.shared.database.instants import from_micros, maybe_micros, maybe_moment, to_micros
from perdure.engines.sqlite.database.database import Database
from perdure.engines.sqlite.database.rows import clean, from_document, to_document
from perdure.engines.sqlite.database.transaction import Transaction
from perdure.engines.sqlite.intake.insertion import check_text


class StepPart:
    """Steps of the store's jobs."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._sql = database.statements("flows/steps.sql")

    async def steps(self, job_ids: Sequence[JobId]) -> dict[JobId, list[StepRecord]]:
        """The steps of these jobs, in the order in which they were begun."""
        if not job_ids:
            return {}
        ids = to_document(list(dict.fromkeys(job_ids)))

        def look(transaction: Transaction) -> dict[JobId, list[StepRecord]]:
            ((document,),) = transaction.run(self._sql["steps"], {"ids": ids})
            found: dict[JobId, list[StepRecord]] = {}
            for _, job_id, *columns in sorted(from_document(document), key=_turn):
                found.setdefault(job_id, []).append(_step(*columns))
            return found

        return await self._database.read(look)

    async def save_steps(self, writes: Sequence[StepWrite]) -> list[bool]:
        """Keep steps of claims that are held, as one document; what is over already stays as it is."""
        if not writes:
            return []
        rows = _document(writes)
        return await self._database.write(lambda transaction: self._save(transaction, rows, len(writes)))

    def apply(self, transaction: Transaction, writes: Sequence[StepWrite]) -> None:
        """The same, in an open transaction."""
        if writes:
            self._save(transaction, _document(writes), len(writes))

    def _save(self, transaction: Transaction, rows: str, count: int) -> list[bool]:
        kept = {"rows": rows, "turn": transaction.numbers(count), "now": transaction.now}
        if transaction.change(self._sql["save"], kept) == count:
            return [True] * count
        ((document,),) = transaction.run(self._sql["lost"], {"rows": rows})
        lost = set(from_document(document))
        return [index not in lost for index in range(count)]


def _document(writes: Sequence[StepWrite]) -> str:
    return to_document([_row(write) for write in writes])


def _row(write: StepWrite) -> tuple[Any, ...]:
    claim, step = write.claim, write.step
    check_text("step", step.key)
    note = None if step.note is None else clean(step.note)
    return (
        claim.job_id,
        claim.token,
        step.key,
        step.kind,
        step.state,
        step.result,
        note,
        step.tries,
        maybe_micros(step.due_at),
        to_micros(step.begun_at),
    )


def _turn(row: list[Any]) -> int:
    turn: int = row[0]
    return turn


def _step(key: str, kind: str, state: str, result: str | None, note: str | None, *rest: Any) -> StepRecord:
    tries, due_at, begun_at, changed_at = rest
    return StepRecord(
        key=key,
        kind=StepKind(kind),
        state=StepState(state),
        result=result,
        note=note,
        tries=tries,
        due_at=maybe_moment(due_at),
        begun_at=from_micros(begun_at),
        changed_at=from_micros(changed_at),
    )

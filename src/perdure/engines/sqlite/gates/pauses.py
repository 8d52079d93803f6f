"""Pauses: jobs of a queue, of a kind or with certain arguments that must not run for now.

A worker parks such a job with a note that begins with `pause` and the pause's id. That is how it is found again.
"""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress
from typing import Any

from perdure.domain.gate import Pause
from perdure.domain.jobs.states import Reason
from perdure.domain.operate.audit import By
from perdure.engines.shared.database.instants import from_micros, maybe_micros, maybe_moment, to_micros
from perdure.engines.shared.operate.audit_details import paused, resumed
from perdure.engines.sqlite.database.database import Database
from perdure.engines.sqlite.database.rows import clean, from_document, to_document
from perdure.engines.sqlite.database.transaction import Transaction
from perdure.engines.sqlite.fleet.upkeep import UpkeepPart
from perdure.engines.sqlite.flows.waking import Waker
from perdure.engines.sqlite.intake.insertion import check_text
from perdure.engines.sqlite.operate.commands.audit import Audit
from perdure.errors import StoreRefused
from perdure.policy.limits.pausing import openings_of_pauses


class PausePart:
    """Pauses of the store."""

    def __init__(self, database: Database, upkeep: UpkeepPart) -> None:
        self._database = database
        self._upkeep = upkeep
        self._sql = database.statements("gates/pauses.sql")
        self._audit = Audit(database)
        self._waker = Waker(database, upkeep, Reason.ON_HOLD)

    async def pause(self, pause: Pause, by: By) -> None:
        """Store a pause; an existing one with this id does not change."""
        for field in ("id", "queue", "kind", "args"):
            if (text := getattr(pause, field)) is not None:
                check_text(field, text)
        kept = {
            "id": pause.id,
            "queue": pause.queue,
            "kind": pause.kind,
            "args": pause.args,
            "until": maybe_micros(pause.until),
            "why": None if pause.why is None else clean(pause.why),
            "actor": clean(pause.actor),
            "at": to_micros(pause.at),
        }

        def act(transaction: Transaction) -> None:
            if transaction.change(self._sql["pause"], kept):
                self._audit.write(transaction, by, paused(pause))

        await self._database.write(act)

    async def resume(self, ids: Collection[str], by: By) -> int:
        """Delete these pauses, so that no worker holds jobs for them any more; then release the held ones."""
        if not ids:
            return 0

        def act(transaction: Transaction) -> None:
            held = [_pause(row) for row in transaction.run(self._sql["pauses"])]
            gone = {pause_id for (pause_id,) in transaction.run(self._sql["forget"], {"ids": to_document(list(ids))})}
            for pause in held:
                if pause.id in gone:
                    self._audit.write(transaction, by, resumed(pause))

        await self._database.write(act)
        return await self._waker.wake_held(openings_of_pauses(ids))

    async def pauses(self) -> list[Pause]:
        """The current pauses, oldest first; those whose time is over end here."""

        def look(transaction: Transaction) -> tuple[list[Pause], list[str]]:
            found = [_pause(row) for row in transaction.run(self._sql["pauses"])]
            now = from_micros(transaction.now)
            over = [pause.id for pause in found if pause.until is not None and pause.until <= now]
            return [pause for pause in found if pause.id not in over], over

        holding, over = await self._database.read(look)
        if over:
            with suppress(StoreRefused):  # a database that takes no writes: the next that can write ends them
                await self._database.write(lambda each: each.run(self._sql["forget"], {"ids": to_document(over)}))
                await self._waker.wake_held(openings_of_pauses(over))
        return holding

    def wake_unpaused(self, transaction: Transaction, limit: int) -> int:
        """Release jobs that were parked for a pause after it was deleted; returns how many were found."""
        ((document,),) = transaction.run(self._sql["unpaused"], {"limit": limit})
        rows = from_document(document)
        if rows:
            self._upkeep.wake(transaction, rows, Reason.RESUMED)
        return len(rows)


def _pause(row: tuple[Any, ...]) -> Pause:
    pause_id, queue, kind, args, until, why, actor, at = row
    return Pause(
        id=pause_id,
        queue=queue,
        kind=kind,
        args=args,
        until=maybe_moment(until),
        why=why,
        actor=actor,
        at=from_micros(at),
    )

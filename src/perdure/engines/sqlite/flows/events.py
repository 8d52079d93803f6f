"""Events: emitted once and kept, so that a job may wait before or after the emission.

A job that waits for an event has a row in `waiter`, which leads from the event to the job. The job's own row among
the parked says whether it still waits.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from perdure.domain.flows.approval import approvals_before
from perdure.domain.flows.flow import Emission
from perdure.domain.jobs.ids import JobId
from perdure.domain.jobs.states import Reason
from perdure.domain.operate.audit import By, Note
from perdure.engines.shared.database.instants import from_micros
from perdure.engines.sqlite.database.database import Database
from perdure.engines.sqlite.database.rows import clean, from_document, to_document
from perdure.engines.sqlite.database.transaction import Transaction
from perdure.engines.sqlite.fleet.upkeep import UpkeepPart
from perdure.engines.sqlite.intake.insertion import check_text
from perdure.engines.sqlite.operate.commands.audit import Audit


class EventPart:
    """Events of the store."""

    def __init__(self, database: Database, upkeep: UpkeepPart) -> None:
        self._database = database
        self._upkeep = upkeep
        self._sql = database.statements("flows/events.sql")
        self._audit = Audit(database)

    async def emit(self, event: str, payload: str | None, by: By, note: Note | None = None) -> Emission:
        """Emit an event and wake the jobs waiting for it; the commit itself notifies the workers."""
        check_text("event", event)
        if payload is not None:
            check_text("payload", payload)

        def act(transaction: Transaction) -> Emission:
            emitted = {"event": event, "payload": payload, "actor": clean(by.actor), "now": transaction.now}
            is_first = transaction.change(self._sql["add_event"], emitted) > 0
            ((document,),) = transaction.run(self._sql["waiting"], {"event": event})
            woken = self._upkeep.wake(transaction, from_document(document), Reason.EVENT_CAME)
            transaction.change(self._sql["drop_waiters"], {"event": event})
            if is_first and note is not None:
                self._audit.write(transaction, by, replace(note, jobs=len(woken)))
            ((kept, at),) = transaction.run(self._sql["event"], {"event": event})
            return Emission(event, kept, from_micros(at), is_first, len(woken))

        return await self._database.write(act)

    async def emitted(self, event: str) -> Emission | None:
        """An emitted event."""
        params = {"event": event}
        rows = await self._database.read(lambda transaction: transaction.run(self._sql["event"], params))
        return Emission(event, rows[0][0], from_micros(rows[0][1]), is_first=False) if rows else None

    async def asking(self, limit: int, before: JobId | None = None) -> list[JobId]:
        """Jobs that wait for an answer; several questions of one job are next to each other."""
        first, behind = approvals_before(before)
        params = {"first": first, "behind": behind, "limit": limit}
        rows = await self._database.read(lambda transaction: transaction.run(self._sql["asking"], params))
        return list(dict.fromkeys(JobId(row[0]) for row in rows))

    def known(self, transaction: Transaction, events: Sequence[str]) -> set[str]:
        """Those of these events that have been emitted."""
        return {name for (name,) in transaction.run(self._sql["known"], {"names": to_document(events)})}

    def expect(self, transaction: Transaction, ids: Sequence[JobId]) -> None:
        """Note jobs that have just parked to wait for an event."""
        transaction.change(self._sql["add_waiters"], {"ids": to_document(ids)})

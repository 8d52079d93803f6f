"""The log of events. Triggers write it while it is switched on.

There is one writer at a time, so the order of ids is the order of commits. The era of a cursor is the second in which
the log was switched on: a cursor of an earlier log is not taken for one of this log.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Final

import msgspec

from perdure.domain.operate.audit import By
from perdure.domain.operate.event_log import Cursor, EventLogState, LoggedEvent
from perdure.engines.shared.database.instants import from_micros, span
from perdure.engines.shared.operate.webhook_records import check_reach, log_switched
from perdure.engines.sqlite.database.database import Database
from perdure.engines.sqlite.database.transaction import Transaction
from perdure.engines.sqlite.operate.commands.audit import Audit

_SECOND_MICROS: Final = 1_000_000


class EventLogPart:
    """The event log of the store."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._sql = database.statements("operate/event_log.sql")
        self._audit = Audit(database)

    async def switch_event_log(self, keep: timedelta | None, by: By) -> EventLogState:
        """Make or drop the triggers that write the log."""

        def act(transaction: Transaction) -> EventLogState:
            before = self._state(transaction)
            if keep is None:
                transaction.run(self._sql["switch_off"])
            else:
                if not before.is_on:
                    transaction.run(self._sql["mark_beginning"], {"now": transaction.now})
                transaction.run(self._sql["switch_on"], {"keep": span(keep), "now": transaction.now})
            for statement in ("leave_ends", "leave_missed") if keep is None else ("log_ends", "log_missed"):
                transaction.run(self._sql[statement])
            after = self._state(transaction)
            if before.keep != after.keep:
                self._audit.write(transaction, by, log_switched(before, after))
            return after

        return await self._database.write(act)

    async def event_log(self) -> EventLogState:
        """Whether events are logged, and which cursors are valid."""
        return await self._database.read(self._state)

    async def read_events(self, after: Cursor, limit: int) -> list[LoggedEvent]:
        """The events after a cursor."""

        def look(transaction: Transaction) -> list[LoggedEvent]:
            state = self._state(transaction)
            check_reach(state, after, state.end)
            rows = transaction.run(self._sql["read"], {"after": after.number, "limit": limit})
            return [_event(state.end.era, row) for row in rows]

        return await self._database.read(look)

    async def forget_events(self, limit: int) -> int:
        """Delete some expired events."""

        def look(transaction: Transaction) -> int | None:
            ((last,),) = transaction.run(self._sql["old"], {"now": transaction.now, "limit": limit})
            return None if last is None else int(last)

        def act(transaction: Transaction) -> int:
            last = look(transaction)
            if last is None:
                return 0
            transaction.change(self._sql["note_forgotten"], {"to": last})
            return transaction.change(self._sql["forget"], {"to": last})

        return 0 if await self._database.read(look) is None else await self._database.write(act)

    def _state(self, transaction: Transaction) -> EventLogState:
        for keep, since, pruned_to, end in transaction.run(self._sql["state"]):
            return EventLogState(
                keep=None if keep is None else timedelta(microseconds=keep),
                since=from_micros(since),
                oldest=Cursor(since // _SECOND_MICROS, pruned_to),
                end=Cursor(since // _SECOND_MICROS, end),
            )
        return EventLogState()


def _event(era: int, row: tuple[Any, ...]) -> LoggedEvent:
    number, at, type_, subject, kind, queue, tags, details = row
    return LoggedEvent(
        id=str(Cursor(era, number)),
        type=type_,
        at=from_micros(at),
        subject=subject,
        kind=kind,
        queue=queue,
        tags=tuple(msgspec.json.decode(tags)) if tags else (),
        details=_details(msgspec.json.decode(details)),
    )


def _details(stored: dict[str, Any]) -> dict[str, Any]:
    """Details without what is not known, their times as texts."""
    last = stored.pop("last", None)
    if last is not None:
        stored["error_type"], stored["error"] = msgspec.json.decode(last) if isinstance(last, str) else last
    for name in ("started_at", "nominal_at"):
        if stored.get(name) is not None:
            stored[name] = from_micros(stored[name]).isoformat()
    return {name: value for name, value in stored.items() if value is not None}

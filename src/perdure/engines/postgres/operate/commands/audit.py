"""Writes the audit trail, in the transaction of the action."""

from __future__ import annotations

from perdure.clock import Clock
from perdure.domain.operate.audit import By, Note
from perdure.engines.postgres.database.arrays import storable
from perdure.engines.postgres.database.naming import Naming
from perdure.engines.postgres.database.rows import Row
from perdure.engines.postgres.database.wire import Asks, Statement
from perdure.engines.shared.operate.audit_details import encoded_details


class Audit:
    """The audit trail. Every part that changes something on behalf of an actor writes here."""

    def __init__(self, naming: Naming, clock: Clock | None) -> None:
        self._sql = naming.statements("operate/commands/audit.sql")
        self._clock = clock

    async def write(self, wire: Asks, by: By, note: Note) -> Row:
        """Add one entry in a transaction that is open; its columns come back."""
        [row] = await wire.fetch(*self.statement(by, note))
        return row

    def statement(self, by: By, note: Note) -> Statement:
        """What adds one entry: for a wire that sends it with others."""
        entry = {
            "action": storable(note.action),
            "job_id": note.job_id,
            "jobs": note.jobs,
            "details": encoded_details(note),
            "now": self._clock.now() if self._clock else None,
        }
        return self._sql["write"], {**entry, **by_columns(by)}


def by_columns(by: By) -> dict[str, object]:
    """Who acts, why and from where, as parameters."""
    why, source = (None if text is None else storable(text) for text in (by.why, by.source))
    return {"actor": storable(by.actor), "why": why, "source": source, "bulk": by.bulk}

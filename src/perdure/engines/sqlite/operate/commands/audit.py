"""Writes the audit trail, in the transaction of the action."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from perdure.domain.jobs.ids import JobId
from perdure.domain.operate.audit import By, Note
from perdure.engines.shared.operate.audit_details import encoded_details
from perdure.engines.sqlite.database.database import Database
from perdure.engines.sqlite.database.drivers import Row
from perdure.engines.sqlite.database.rows import clean, to_document
from perdure.engines.sqlite.database.transaction import Transaction

_KNOWN_BEFORE: Final = ("state", "kind", "mark", "due_at")


class Audit:
    """The audit trail. Every part that changes something on behalf of an actor writes here."""

    def __init__(self, database: Database) -> None:
        self._sql = database.statements("operate/commands/audit.sql")

    def write(self, transaction: Transaction, by: By, note: Note) -> Row:
        """Add one entry; its columns come back."""
        entry = {
            "action": clean(note.action),
            "job_id": note.job_id or "",
            "jobs": note.jobs,
            "details": encoded_details(note),
            "now": transaction.now,
        }
        [row] = transaction.run(self._sql["write"], entry | by_columns(by))
        return row

    def about_jobs(
        self, transaction: Transaction, ids: Sequence[JobId], by: By, action: str, **details: str | None
    ) -> None:
        """Record an action on jobs, one entry for each."""
        if ids:
            entry = {"action": action, "details": to_document(details), "ids": to_document(ids), "now": transaction.now}
            transaction.change(self._sql["write_each"], entry | by_columns(by))

    def about_command(
        self,
        transaction: Transaction,
        ids: Sequence[JobId],
        by: By,
        action: str,
        *,
        before: Sequence[str] = ("state",),
        after: Mapping[str, Any] | None,
    ) -> None:
        """Record an action on jobs before it happens: these facts of each `before`, and `after`."""
        if ids:
            left_out = {name: None for name in _KNOWN_BEFORE if name not in before}
            details = {"before": left_out} | ({} if after is None else {"after": after})
            entry = {"action": action, "details": to_document(details), "ids": to_document(ids), "now": transaction.now}
            transaction.change(self._sql["note_command"], entry | by_columns(by))

    def about_redate(self, transaction: Transaction, ids: Sequence[JobId], by: By) -> None:
        """Record that parked jobs are about to be redated."""
        entry = {"ids": to_document(ids), "now": transaction.now}
        transaction.change(self._sql["note_redate"], entry | by_columns(by))

    def about_moves(self, transaction: Transaction, rows: Sequence[tuple[JobId, str, str, int]]) -> None:
        """Note what the engine did with claims: job, action, new state and attempts of each."""
        if rows:
            transaction.change(self._sql["note_moves"], {"rows": to_document(rows), "now": transaction.now})

    def about_children(self, transaction: Transaction, ids: Sequence[JobId]) -> None:
        """Note that these jobs, which are not final yet, are cancelled with their parents."""
        transaction.change(self._sql["note_children"], {"ids": to_document(ids), "now": transaction.now})


def by_columns(by: By) -> dict[str, str | None]:
    """Who acts, why and from where, as values to bind."""
    why, source = (None if text is None else clean(text) for text in (by.why, by.source))
    return {"actor": clean(by.actor), "why": why, "source": source, "bulk": by.bulk}

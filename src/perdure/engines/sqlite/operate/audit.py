"""Who did what, written in the transaction in which it is done."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from perdure.domain.jobs.ids import JobId
from perdure.engines.sqlite.database.database import Database
from perdure.engines.sqlite.database.rows import clean, to_document
from perdure.engines.sqlite.database.transaction import Transaction


class Audit:
    """The audit trail."""

    def __init__(self, database: Database) -> None:
        self._sql = database.statements("operate/commands/audit.sql")

    def about_jobs(
        self, transaction: Transaction, ids: Sequence[JobId], actor: str, action: str, **details: str | None
    ) -> None:
        """Note what somebody did to jobs, one entry for each."""
        if ids:
            self._write(transaction, ids, actor, action, details)

    def about_command(
        self,
        transaction: Transaction,
        ids: Sequence[JobId],
        actor: str,
        action: str,
        *,
        with_kind: bool = False,
        **details: str,
    ) -> None:
        """Note what somebody is about to do to jobs, with the state of each, and its kind if that will be gone."""
        if ids:
            left_out = {} if with_kind else {"kind": None}
            entry = {"actor": clean(actor), "action": action, "details": to_document(details | left_out)}
            where = {"ids": to_document(ids), "now": transaction.now}
            transaction.change(self._sql["note_command"], entry | where)

    def about_reschedule(self, transaction: Transaction, ids: Sequence[JobId], actor: str, to: str) -> None:
        """Note that parked jobs are about to get this time."""
        entry = {"actor": clean(actor), "ids": to_document(ids), "to": to, "now": transaction.now}
        transaction.change(self._sql["note_reschedule"], entry)

    def about(self, transaction: Transaction, actor: str, action: str, **details: str) -> None:
        """Note what somebody did to something else; the details say to what."""
        self._write(transaction, [""], actor, action, {name: clean(text) for name, text in details.items()})

    def about_moves(self, transaction: Transaction, rows: Sequence[tuple[JobId, str, str, int]]) -> None:
        """Note what the engine did with claims: job, action, new state and attempts of each."""
        if rows:
            transaction.change(self._sql["note_moves"], {"rows": to_document(rows), "now": transaction.now})

    def about_children(self, transaction: Transaction, ids: Sequence[JobId]) -> None:
        """Note that these jobs, which are not final yet, are cancelled with their parents."""
        transaction.change(self._sql["note_children"], {"ids": to_document(ids), "now": transaction.now})

    def _write(
        self, transaction: Transaction, ids: Sequence[str], actor: str, action: str, details: Mapping[str, str | None]
    ) -> None:
        entry = {"actor": clean(actor), "action": action, "details": to_document(details)}
        transaction.change(self._sql["write"], entry | {"ids": to_document(ids), "now": transaction.now})

"""Deletes leftovers of gates: places that no longer count, holds and estimates of leases that are gone, old pauses."""

from __future__ import annotations

from typing import Final

from perdure.domain.jobs.ids import JobId
from perdure.engines.shared.database.instants import span
from perdure.engines.shared.gates.needs import SPENDS_KEPT
from perdure.engines.sqlite.database.database import Database
from perdure.engines.sqlite.database.rows import from_document, to_document
from perdure.engines.sqlite.database.transaction import Transaction
from perdure.engines.sqlite.gates.pauses import PausePart
from perdure.engines.sqlite.gates.spend_sums import SpendSums
from perdure.policy.clock_slack import CLOCK_SLACK

_Cursor = tuple[str, JobId]
_BEGINNING: _Cursor = ("", JobId(""))
_GONE: Final = (
    "forget_places",
    "forget_spends",
    "drop_ended_estimates",
    "void_ended_estimates",
    "redate_spends",
    "forget_gates",
)
_STALE: Final = {"stale_holds": "drop_holds", "stale_line": "leave_line", "stale_places": "leave_places"}


class GateUpkeepPart:
    """Upkeep of the gates."""

    def __init__(self, database: Database, pauses: PausePart, sums: SpendSums) -> None:
        self._database = database
        self._pauses = pauses
        self._sums = sums
        self._sql = database.statements("gates/gates.sql")
        self._cursors: dict[str, _Cursor] = {}

    async def forget_gates(self, limit: int) -> int:
        """Look at `limit` rows of each type, and delete those that no longer count; returns how many in all.

        Jobs that are on hold for a pause that is gone come back.
        """
        forgotten, cursors = await self._database.write(lambda transaction: self._forget(transaction, limit))
        self._cursors = cursors
        return forgotten

    def _forget(self, transaction: Transaction, limit: int) -> tuple[int, dict[str, _Cursor]]:
        now = transaction.now
        params = {"now": now, "old": now - span(SPENDS_KEPT), "ahead": now + span(CLOCK_SLACK), "limit": limit}
        forgotten = self._pauses.wake_unpaused(transaction, limit)
        for statement in _GONE:
            forgotten += transaction.change(self._sql[statement], params)
        forgotten += self._sums.forget(transaction, limit)
        cursors: dict[str, _Cursor] = {}
        for look, drop in _STALE.items():
            dropped, cursors[look] = self._sweep(transaction, look, drop, limit)
            forgotten += dropped
        return forgotten, cursors

    def _sweep(self, transaction: Transaction, look: str, drop: str, limit: int) -> tuple[int, _Cursor]:
        """Check the next part of a table and drop stale rows; returns their number, and where to continue."""
        key, job_id = self._cursors.get(look, _BEGINNING)
        ((document,),) = transaction.run(self._sql[look], {"key": key, "job_id": job_id, "limit": limit})
        seen = from_document(document)
        if stale := [(key, job_id) for key, job_id, is_stale in seen if is_stale]:
            transaction.change(self._sql[drop], {"rows": to_document(stale)})
        return len(stale), (seen[-1][0], seen[-1][1]) if len(seen) == limit else _BEGINNING

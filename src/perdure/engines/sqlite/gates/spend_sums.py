"""Sums of spends, so that a budget is read in a few rows, no matter how many spends its windows hold.

Each spend records which part of it is in the sums; that is written in the transaction that adds it to them. So each is
either in the sums in its current form, or read beside them, regardless of its time, its writer and its commit; no clock
matters. A release without sums writes spends that are not in them, and changes spends so that they are no longer in
them in their current form.
"""

from __future__ import annotations

from typing import Any, Final

from perdure.engines.shared.database.instants import span
from perdure.engines.shared.gates.needs import SPENDS_KEPT
from perdure.engines.shared.gates.spend_spans import SPANS
from perdure.engines.sqlite.database.database import Database
from perdure.engines.sqlite.database.rows import from_document, to_document
from perdure.engines.sqlite.database.transaction import Transaction

_SPANS: Final = to_document([span(each) for each in SPANS])


class SpendSums:
    """Keeps the sums."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._sql = database.statements("gates/spend_sums.sql")

    async def sum_spends(self, limit: int) -> int:
        """Add up to `limit` missing spends to the sums; returns their number. Writes nothing if none is missing."""
        if not await self._database.read(lambda transaction: self._unsummed(transaction, 1)):
            return 0
        return await self._database.write(lambda transaction: self._sum(transaction, limit))

    def forget(self, transaction: Transaction, limit: int) -> int:
        """Delete up to `limit` sums that no budget counts any more; returns their number."""
        params = {"old": transaction.now - span(SPENDS_KEPT), "spans": _SPANS, "limit": limit}
        return transaction.change(self._sql["forget_sums"], params)

    def _sum(self, transaction: Transaction, limit: int) -> int:
        found = self._unsummed(transaction, limit)
        ids = to_document(found)
        transaction.change(self._sql["add_up"], {"ids": ids, "spans": _SPANS})
        transaction.change(self._sql["note_summed"], {"ids": ids})
        return len(found)

    def _unsummed(self, transaction: Transaction, limit: int) -> list[Any]:
        ((document,),) = transaction.run(self._sql["unsummed"], {"limit": limit})
        return from_document(document)

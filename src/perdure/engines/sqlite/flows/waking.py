"""Jobs that are held, and released all at once.

There may be any number of them, so they come back in batches, each in a transaction of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from perdure.domain.jobs.ids import JobId
from perdure.domain.jobs.states import Reason
from perdure.engines.shared.batch_sizes import WOKEN_AT_ONCE
from perdure.engines.sqlite.database.database import Database
from perdure.engines.sqlite.database.rows import from_document, to_document
from perdure.engines.sqlite.database.transaction import Transaction
from perdure.engines.sqlite.fleet.upkeep import UpkeepPart


class Waker:
    """Makes jobs ready that are held for one reason."""

    def __init__(self, database: Database, upkeep: UpkeepPart, reason: Reason) -> None:
        self._database = database
        self._upkeep = upkeep
        self._sql = database.statements("flows/waking.sql", {"reason_held": f"'{reason.value}'"})

    async def wake_held(self, openings: Sequence[str]) -> int:
        """Wake the jobs whose note begins in one of these ways; how many are ready."""
        total, after = 0, JobId("")
        while True:
            woken, last = await self._database.write(partial(self._wake_batch, openings, after))
            total += woken
            if last is None:
                return total
            after = last

    def _wake_batch(self, openings: Sequence[str], after: JobId, transaction: Transaction) -> tuple[int, JobId | None]:
        """How many are ready, and behind which to go on; None: that was the end."""
        which = {"openings": to_document(openings), "after": after, "limit": WOKEN_AT_ONCE}
        ((document,),) = transaction.run(self._sql["held"], which)
        rows = from_document(document)
        woken = self._upkeep.wake(transaction, rows, Reason.RESUMED) if rows else []
        return len(woken), rows[-1][0] if len(rows) == WOKEN_AT_ONCE else None

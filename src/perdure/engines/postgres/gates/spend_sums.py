"""Sums of what was spent, so that a budget is read in a few rows no matter how many spends its windows hold.

Each spend records which part of it is in the sums; the statement that adds it to them writes that. So each is either
in the sums in its current form, or read beside them, regardless of its time, its writer and its commit; no clock
matters. A release without sums writes spends that are not in them, and changes spends so that they are no longer in
them in their current form.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final

from perdure.clock import Clock
from perdure.engines.postgres.database.arrays import text_array
from perdure.engines.postgres.database.connections import Pool
from perdure.engines.postgres.database.encoding import seconds_text
from perdure.engines.postgres.database.naming import Naming
from perdure.engines.postgres.database.wire import Params
from perdure.engines.shared.gates.needs import SPENDS_KEPT
from perdure.engines.shared.gates.spend_spans import SPANS

_SPANS: Final = text_array([seconds_text(each) for each in SPANS])


class SpendSums:
    """Keeps the sums."""

    def __init__(self, naming: Naming, pool: Pool, clock: Clock | None) -> None:
        self._statements = naming.statements("gates/spend_sums.sql")
        self._pool = pool
        self._clock = clock

    async def sum_spends(self, limit: int) -> int:
        """Add up to `limit` missing spends to the sums; returns their number."""
        params: Params = {"spans": _SPANS, "limit": limit}
        [[summed]] = await self._pool.rows(self._statements["sum_up"], params)
        return int(summed)

    async def forget(self, limit: int) -> int:
        """Delete up to `limit` sums that no budget counts any more; returns their number."""
        params: Params = {"now": self._now(), "kept": SPENDS_KEPT, "spans": _SPANS, "limit": limit}
        return len(await self._pool.rows(self._statements["forget_sums"], params))

    def _now(self) -> datetime | None:
        return self._clock.now() if self._clock else None

"""Sums of what was spent, so that a budget is read in a few rows however much its windows hold.

A spend tells itself what of it is in the sums: that is written in the statement that adds it to them. So each is
either in the sums as it stands, or read beside them, whatever its time is, whoever has written it and whenever that was
committed; nothing rests on a clock. A release that knows nothing of sums writes spends that are not in them, and
changes them so that they are not in them as they stand.
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
        """Add up to `limit` spends to the sums that are not in them; how many."""
        params: Params = {"spans": _SPANS, "limit": limit}
        [[summed]] = await self._pool.rows(self._statements["sum_up"], params)
        return int(summed)

    async def forget(self, limit: int) -> int:
        """Delete up to `limit` sums over times that no budget counts; how many."""
        params: Params = {"now": self._now(), "kept": SPENDS_KEPT, "spans": _SPANS, "limit": limit}
        return len(await self._pool.rows(self._statements["forget_sums"], params))

    def _now(self) -> datetime | None:
        return self._clock.now() if self._clock else None

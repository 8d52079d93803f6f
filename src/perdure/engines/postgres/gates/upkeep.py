"""Deletes leftovers of gates: starts that no longer count, holds and estimates of leases that are gone, old pauses."""

from __future__ import annotations

from datetime import datetime
from functools import partial
from typing import Final

from perdure.clock import Clock
from perdure.engines.postgres.database.arrays import number_array
from perdure.engines.postgres.database.connections import Pool
from perdure.engines.postgres.database.naming import Naming
from perdure.engines.postgres.database.wire import Params, Wire
from perdure.engines.postgres.gates.pauses import PausePart
from perdure.engines.postgres.gates.spend_sums import SpendSums
from perdure.engines.postgres.operate.views.filters import BEFORE_ALL
from perdure.engines.shared.gates.needs import SPENDS_KEPT
from perdure.policy.clock_slack import CLOCK_SLACK

_Spot = tuple[str, object]  # a key, and which of its rows: an id, or an instant
_BEGINNINGS: Final[dict[str, _Spot]] = {
    "stale_holds": ("", BEFORE_ALL),
    "stale_line": ("", BEFORE_ALL),
    "stale_places": ("", BEFORE_ALL),
    "stale_starts": ("", "-infinity"),
}


class GateUpkeepPart:
    """Deletes rows that no longer count."""

    def __init__(self, naming: Naming, pool: Pool, clock: Clock | None, pauses: PausePart, sums: SpendSums) -> None:
        self._statements = naming.statements("gates/gates.sql")
        self._pool = pool
        self._clock = clock
        self._pauses = pauses
        self._sums = sums
        self._spots: dict[str, _Spot] = {}

    async def forget_gates(self, limit: int) -> int:
        """Look at `limit` rows of each type, and delete those that no longer count; returns how many in all.

        Jobs that are on hold for a pause that is gone come back.
        """
        params: Params = {"now": self._now(), "kept": SPENDS_KEPT, "slack": CLOCK_SLACK, "limit": limit}
        forgotten = await self._pauses.wake_unpaused(limit)
        for statement in ("forget_places", "forget_spends", "redate_spends", "forget_gates"):
            forgotten += len(await self._pool.rows(self._statements[statement], params))
        forgotten += await self._pool.transaction(partial(self._drop_estimates, limit))
        forgotten += await self._sums.forget(limit)
        for statement in _BEGINNINGS:
            forgotten += await self._sweep(statement, limit)
        return forgotten

    async def _drop_estimates(self, limit: int, wire: Wire) -> int:
        """Delete the estimates of ended attempts; returns their number."""
        ended = [number for (number,) in await wire.fetch(self._statements["ended_estimates"], {"limit": limit})]
        if not ended:
            return 0
        return len(await wire.fetch(self._statements["drop_estimates"], {"ids": number_array(ended)}))

    async def _sweep(self, statement: str, limit: int) -> int:
        """Check the next part of a table and drop stale rows; returns their number."""
        key, after = self._spots.pop(statement, _BEGINNINGS[statement])
        params = {"key": key, "after": after, "limit": limit, "now": self._now()}
        rows = await self._pool.rows(self._statements[statement], params)
        if not rows:
            return 0
        [[key, after, dropped, seen]] = rows
        if seen == limit:
            self._spots[statement] = key, after
        return int(dropped)

    def _now(self) -> datetime | None:
        return self._clock.now() if self._clock else None

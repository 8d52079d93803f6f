"""At most once in a period: one row for each key, which the first caller after its period takes over."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from perdure.clock import Clock
from perdure.engines.postgres.database.connections import Pool
from perdure.engines.postgres.database.naming import Naming

_MICRO: Final = timedelta(microseconds=1)


class ThrottlePart:
    """Throttled actions, by the database's clock."""

    def __init__(self, naming: Naming, pool: Pool, clock: Clock | None) -> None:
        self._statements = naming.statements("flows/throttle.sql")
        self._pool = pool
        self._clock = clock

    async def once_per(self, key: str, period: timedelta, caller: str) -> bool:
        """Take a key for this period, unless another caller has it."""
        now = self._clock.now() if self._clock else None
        params = {"key": key, "caller": caller, "micros": period // _MICRO, "now": now}
        is_ours = bool(await self._pool.rows(self._statements["take"], params))
        if is_ours:
            for statement in ("forget", "forget_ahead"):
                await self._pool.rows(self._statements[statement], {"now": now})
        return is_ours

"""Leadership, as one row for each name: its holder renews it, and any candidate takes it once it has run out."""

from __future__ import annotations

from datetime import datetime, timedelta

from perdure.clock import Clock
from perdure.domain.leadership import Lead, LeaderView
from perdure.engines.postgres.database.connections import Pool
from perdure.engines.postgres.database.naming import Naming
from perdure.engines.postgres.database.wire import Params, Wire


class LeaderPart:
    """Leases on names, by the database's clock."""

    def __init__(self, naming: Naming, pool: Pool, clock: Clock | None) -> None:
        self._statements = naming.statements("fleet/leaders.sql")
        self._pool = pool
        self._clock = clock

    async def lead(self, name: str, holder: str, lease: timedelta) -> Lead:
        """Become or stay the leader, unless another holder's lease is live."""
        params: Params = {"name": name, "holder": holder, "lease": lease, "now": self._now()}

        async def work(wire: Wire) -> Lead:
            while not (rows := await wire.fetch(self._statements["lead"], params)):
                pass  # the next statement sees who was first
            is_ours, term, leader, remaining = rows[0]
            return Lead(is_ours, term, leader, max(remaining, timedelta(0)))

        return await self._pool.run(work)

    async def step_down(self, name: str, holder: str) -> None:
        """Give the lead up at once; does nothing if another holder has it."""
        params = {"name": name, "holder": holder, "now": self._now()}
        await self._pool.rows(self._statements["step_down"], params)

    async def leaders(self) -> list[LeaderView]:
        """Who leads in what, by name."""
        rows = await self._pool.rows(self._statements["leaders"], {"now": self._now()})
        return [
            LeaderView(name=name, holder=holder, term=term, since=since, until=until)
            for name, holder, term, since, until in rows
        ]

    def _now(self) -> datetime | None:
        return self._clock.now() if self._clock else None

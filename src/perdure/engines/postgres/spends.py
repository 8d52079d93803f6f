"""What was spent under budgets: summed in the database, and read row by row only where a batch may not fit."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta

from msgspec.structs import replace

from perdure.domain.gate import OLDEST_SEEN, Spend, Spending
from perdure.engines.gate_needs import Funds
from perdure.engines.postgres.arrays import text_array
from perdure.engines.postgres.naming import Naming
from perdure.engines.postgres.wire import Wire


class PostgresSpends:
    """Reads budgets, which are locked."""

    def __init__(self, naming: Naming) -> None:
        self._statements = naming.statements("spends.sql")

    async def load(self, wire: Wire, funds: Mapping[str, Funds], now: datetime) -> dict[str, Spending]:
        """What a batch must know of each budget that it asks for."""
        windows = [(name, window) for name, each in funds.items() for window in each.limits]
        asking = [(name, job_id) for name, each in funds.items() for job_id in each.askers]
        params = {
            "names": text_array([name for name, _ in windows]),
            "sinces": text_array([(now - window).isoformat() for _, window in windows]),
            "asked": text_array([name for name, _ in asking]),
            "askers": text_array([job_id for _, job_id in asking]),
        }
        totals: dict[str, dict[timedelta, float]] = {name: {} for name in funds}
        estimates: dict[str, list[Spend]] = {name: [] for name in funds}
        for place, amount, at, owner, job_id in await wire.fetch(self._statements["spending"], params):
            if place is None:
                estimates[owner].append(Spend(owner, at, amount, job_id, is_estimate=True))
            else:
                name, window = windows[place - 1]
                totals[name][window] = amount
        return {
            name: await self._with_oldest(
                wire, name, each, now, Spending(totals=totals[name], estimates=estimates[name])
            )
            for name, each in funds.items()
        }

    async def _with_oldest(self, wire: Wire, name: str, funds: Funds, now: datetime, known: Spending) -> Spending:
        tight = funds.tight(known.totals)
        if not tight:
            return known
        asked = {"name": name, "askers": text_array(funds.askers)}
        [[under_way]] = await wire.fetch(self._statements["under_way"], asked)
        oldest = {window: await self._oldest(wire, name, now - window) for window in tight}
        return replace(known, oldest=oldest, under_way=under_way)

    async def _oldest(self, wire: Wire, name: str, since: datetime) -> list[Spend]:
        asked = {"name": name, "since": since, "most": OLDEST_SEEN}
        return [Spend(name, *row) for row in await wire.fetch(self._statements["oldest"], asked)]

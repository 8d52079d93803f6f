"""What was spent under budgets: read from sums, and row by row only where a batch may not fit (see `spend_sums`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from msgspec.structs import replace

from perdure.domain.gate import OLDEST_SPENDS_SEEN, Spend, Spending
from perdure.domain.jobs.ids import JobId
from perdure.engines.postgres.database.arrays import text_array
from perdure.engines.postgres.database.connections import Pool
from perdure.engines.postgres.database.naming import Naming
from perdure.engines.postgres.database.wire import Params, Wire
from perdure.engines.shared.database.instants import from_micros, to_micros
from perdure.engines.shared.gates.needs import BudgetNeed
from perdure.engines.shared.gates.spend_spans import borders


class Spends:
    """Reads budgets: a gate's, which are locked, in its transaction."""

    def __init__(self, naming: Naming, pool: Pool) -> None:
        self._pool = pool
        self._statements = naming.statements("gates/spends.sql")

    async def load(self, wire: Wire, funds: Mapping[str, BudgetNeed], now: datetime) -> dict[str, Spending]:
        """The state of each budget that a batch asks for."""
        windows = [(name, window) for name, each in funds.items() for window in each.limits]
        asking = [(name, job_id) for name, each in funds.items() for job_id in each.askers]
        params = _asked([(name, now - window) for name, window in windows], asking)
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

    async def budgets(self, most: int) -> list[str]:
        """The first names, in order, with recent spending."""
        return [name for (name,) in await self._pool.rows(self._statements["budgets"], {"most": most})]

    async def spent(self, name: str, since: datetime) -> float:
        """What was spent after that instant, estimates included."""
        [row] = await self._pool.rows(self._statements["spending"], _asked([(name, since)]))
        return float(row[1])

    async def _with_oldest(self, wire: Wire, name: str, funds: BudgetNeed, now: datetime, known: Spending) -> Spending:
        tight = funds.tight(known.totals)
        if not tight:
            return known
        asked = {"name": name, "askers": text_array(funds.askers)}
        [[under_way]] = await wire.fetch(self._statements["under_way"], asked)
        oldest = {window: await self._oldest(wire, name, now - window) for window in tight}
        return replace(known, oldest=oldest, under_way=under_way)

    async def _oldest(self, wire: Wire, name: str, since: datetime) -> list[Spend]:
        asked = {"name": name, "since": since, "most": OLDEST_SPENDS_SEEN}
        return [Spend(name, *row) for row in await wire.fetch(self._statements["oldest"], asked)]


def _asked(windows: Sequence[tuple[str, datetime]], askers: Sequence[tuple[str, JobId]] = ()) -> Params:
    parts = [borders(to_micros(since)) for _, since in windows]
    minutes, hours, days = ([from_micros(each[at]).isoformat() for each in parts] for at in range(3))
    return {
        "names": text_array([name for name, _ in windows]),
        "sinces": text_array([since.isoformat() for _, since in windows]),
        "minutes": text_array(minutes),
        "hours": text_array(hours),
        "days": text_array(days),
        "asked": text_array([name for name, _ in askers]),
        "askers": text_array([job_id for _, job_id in askers]),
    }

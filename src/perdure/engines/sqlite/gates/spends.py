"""What was spent under budgets: read from sums, and row by row only where a batch may not fit (see `spend_sums`)."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from perdure.domain.gate import OLDEST_SPENDS_SEEN, Spend, Spending
from perdure.engines.shared.database.instants import from_micros, span, to_micros
from perdure.engines.shared.gates.needs import BudgetNeed
from perdure.engines.shared.gates.spend_spans import borders
from perdure.engines.sqlite.database.database import Database
from perdure.engines.sqlite.database.rows import from_document, to_document
from perdure.engines.sqlite.database.transaction import Transaction


class Spends:
    """Reads budgets: a gate's inside its transaction of the writer."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._sql = database.statements("gates/spends.sql")

    def load(self, transaction: Transaction, funds: dict[str, BudgetNeed]) -> dict[str, Spending]:
        """The state of each budget that a batch asks for."""
        return {name: self._spending(transaction, name, each) for name, each in funds.items()}

    async def budgets(self, most: int) -> list[str]:
        """The first names, in order, with recent spending."""
        rows = await self._database.read(lambda transaction: transaction.run(self._sql["budgets"], {"most": most}))
        return [name for (name,) in rows]

    async def spent(self, name: str, since: datetime) -> float:
        """What was spent after that instant, estimates included."""
        [total] = await self._database.read(lambda transaction: self._totals(transaction, name, [to_micros(since)]))
        return total

    def _spending(self, transaction: Transaction, name: str, funds: BudgetNeed) -> Spending:
        sums = self._totals(transaction, name, [transaction.now - span(window) for window in funds.limits])
        totals = dict(zip(funds.limits, sums, strict=True))
        asked = {"name": name, "askers": to_document(funds.askers)}
        estimates = _spends(name, self._rows(transaction, "estimates", asked))
        tight = funds.tight(totals)
        if not tight:
            return Spending(totals=totals, estimates=estimates)
        ((under_way,),) = transaction.run(self._sql["under_way"], asked)
        oldest = {window: self._oldest(transaction, name, window) for window in tight}
        return Spending(totals=totals, estimates=estimates, oldest=oldest, under_way=under_way)

    def _totals(self, transaction: Transaction, name: str, sinces: list[int]) -> list[float]:
        asked = [(name, since, *borders(since)) for since in sinces]
        return self._rows(transaction, "totals", {"rows": to_document(asked)})

    def _oldest(self, transaction: Transaction, name: str, window: timedelta) -> list[Spend]:
        asked = {"name": name, "since": transaction.now - span(window), "most": OLDEST_SPENDS_SEEN}
        return _spends(name, self._rows(transaction, "oldest", asked))

    def _rows(self, transaction: Transaction, statement: str, params: dict[str, Any]) -> list[Any]:
        ((document,),) = transaction.run(self._sql[statement], params)
        return from_document(document)


def _spends(name: str, rows: list[Any]) -> list[Spend]:
    return [Spend(name, from_micros(at), amount, job_id, bool(is_guess)) for at, amount, job_id, is_guess in rows]

"""Leadership: a lease with a term. The reader checks first, so that followers take no write lock."""

from __future__ import annotations

from datetime import timedelta

from perdure.domain.leadership import Lead, LeaderView
from perdure.engines.shared.database.instants import after, from_micros
from perdure.engines.sqlite.database.database import Database
from perdure.engines.sqlite.database.transaction import Transaction


class LeaderPart:
    """Leadership in the store."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._sql = database.statements("fleet/leaders.sql")

    async def lead(self, name: str, holder: str, lease: timedelta) -> Lead:
        """Become or stay the leader, unless another holder's lease is live."""
        leads = await self._database.read(lambda transaction: self._other(transaction, name, holder))
        if leads is not None:
            return leads
        return await self._database.write(lambda transaction: self._lead(transaction, name, holder, lease))

    async def step_down(self, name: str, holder: str) -> None:
        """End the holder's lease now."""
        params = {"name": name, "holder": holder}
        await self._database.write(
            lambda transaction: transaction.change(self._sql["step_down"], params | {"now": transaction.now})
        )

    async def leaders(self) -> list[LeaderView]:
        """The current leaders, by name."""

        def look(transaction: Transaction) -> list[LeaderView]:
            return [
                LeaderView(name=name, holder=holder, term=term, since=from_micros(since), until=from_micros(until))
                for name, holder, term, since, until in transaction.run(self._sql["leaders"], {"now": transaction.now})
            ]

        return await self._database.read(look)

    def _other(self, transaction: Transaction, name: str, holder: str) -> Lead | None:
        """The leader, if it is another holder."""
        for leader, term, until in transaction.run(self._sql["leader"], {"name": name, "now": transaction.now}):
            if leader != holder:
                return Lead(False, term, leader, timedelta(microseconds=until - transaction.now))
        return None

    def _lead(self, transaction: Transaction, name: str, holder: str, lease: timedelta) -> Lead:
        """Another process may have taken the lead since the read."""
        other = self._other(transaction, name, holder)
        if other is not None:
            return other
        until = after(transaction.now, lease)
        times = {"now": transaction.now, "until": until, "lease": until - transaction.now}
        params = {"name": name, "holder": holder, **times}
        ((term,),) = transaction.run(self._sql["lead"], params)
        return Lead(True, term, holder, lease)

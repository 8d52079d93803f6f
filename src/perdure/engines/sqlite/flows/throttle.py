"""At most once in a period: the reader checks first, so that late callers take no write lock."""

from __future__ import annotations

from datetime import timedelta

from perdure.engines.shared.database.instants import after
from perdure.engines.sqlite.database.database import Database
from perdure.engines.sqlite.database.transaction import Transaction


class ThrottlePart:
    """Throttled actions in the store."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._sql = database.statements("flows/throttle.sql")

    async def once_per(self, key: str, period: timedelta, caller: str) -> bool:
        """Take a key for this period, unless another caller has it."""
        params = {"key": key, "caller": caller}

        def is_taken(transaction: Transaction) -> bool:
            return bool(transaction.run(self._sql["taken"], params | {"now": transaction.now}))

        def take(transaction: Transaction) -> bool:
            if is_taken(transaction):  # since the reader looked
                return False
            times = {"now": transaction.now, "until": after(transaction.now, period)}
            transaction.change(self._sql["take"], params | times)
            for statement in ("forget", "forget_ahead"):
                transaction.change(self._sql[statement], {"now": transaction.now})
            return True

        return not await self._database.read(is_taken) and await self._database.write(take)

"""What apps have declared about their kinds.

The kinds whose finished jobs are kept for a time of their own are remembered here, so that an acknowledgement needs no
look at the database to tell them. They are read when kinds are declared, when there are orphans, and by every pruner.
"""

from __future__ import annotations

from collections.abc import Sequence

from perdure.engines.shared.operate.kind_records import (
    changed_records,
    keep_text,
    limits_text,
    record_of,
    words_text,
)
from perdure.engines.sqlite.database.database import Database
from perdure.engines.sqlite.database.transaction import Transaction
from perdure.engines.sqlite.intake.insertion import check_text
from perdure.storage.operate.kinds import KindRecord
from perdure.storage.records import Keep


class KindPart:
    """Kinds of the store."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._sql = database.statements("operate/views/kinds.sql")
        self.kept: frozenset[str] = frozenset()

    async def declare_kinds(self, kinds: Sequence[KindRecord]) -> None:
        """Store the records of these kinds, if they have changed."""
        known = {record.name: record for record in await self.kinds()}
        if changed := changed_records(kinds, known):
            await self._database.write(lambda transaction: self._declare(transaction, changed))
            await self.kinds()

    async def kinds(self) -> list[KindRecord]:
        """All kinds that have a record, by name."""
        return await self._database.read(self.read)

    def read(self, transaction: Transaction) -> list[KindRecord]:
        """The same, in an open transaction."""
        records = [record_of(*row) for row in transaction.run(self._sql["kinds"])]
        self.kept = frozenset(record.name for record in records if record.keep is not None)
        return records

    def own_times(self, transaction: Transaction) -> dict[str, Keep]:
        """The retention that kinds have declared themselves."""
        return {record.name: record.keep for record in self.read(transaction) if record.keep is not None}

    def _declare(self, transaction: Transaction, changed: Sequence[KindRecord]) -> None:
        for record in changed:
            check_text("kind", record.name)
            if record.says_nothing:
                transaction.change(self._sql["forget"], {"name": record.name})
            else:
                row = {"name": record.name, "words": words_text(record), "keep": keep_text(record)}
                row["limits"] = limits_text(record)
                transaction.change(self._sql["declare"], row | {"now": transaction.now})

"""What apps have declared about their kinds.

The kinds whose finished jobs are kept for a time of their own are remembered here, so that an acknowledgement needs no
look at the database to tell them. They are read when kinds are declared, when there are orphans, and by every pruner.
"""

from __future__ import annotations

from collections.abc import Sequence

from perdure.clock import Clock
from perdure.engines.postgres.database.connections import Pool
from perdure.engines.postgres.database.naming import Naming
from perdure.engines.postgres.database.wire import Asks, Params
from perdure.engines.shared.operate.kind_records import (
    changed_records,
    keep_text,
    limits_text,
    record_of,
    words_text,
)
from perdure.storage.operate.kinds import KindRecord
from perdure.storage.records import Keep


class KindPart:
    """Stores and reads the declarations of kinds."""

    def __init__(self, naming: Naming, pool: Pool, clock: Clock | None) -> None:
        self._statements = naming.statements("operate/views/kinds.sql")
        self._pool = pool
        self._clock = clock
        self.kept: frozenset[str] = frozenset()

    async def declare_kinds(self, kinds: Sequence[KindRecord]) -> None:
        """Store the records of these kinds, if they have changed."""
        known = {record.name: record for record in await self.kinds()}
        for record in sorted(changed_records(kinds, known), key=lambda record: record.name):
            params: Params = {
                "name": record.name,
                "words": words_text(record),
                "keep": keep_text(record),
                "limits": limits_text(record),
                "now": self._clock.now() if self._clock else None,
            }
            await self._pool.rows(self._statements["forget" if record.says_nothing else "declare"], params)
        await self.kinds()

    async def kinds(self) -> list[KindRecord]:
        """All kinds that have a record, by name."""
        return await self._pool.run(self.read)

    async def read(self, wire: Asks) -> list[KindRecord]:
        """The same, on a given connection."""
        records = [record_of(*row) for row in await wire.fetch(self._statements["kinds"], {})]
        self.kept = frozenset(record.name for record in records if record.keep is not None)
        return records

    async def own_times(self, wire: Asks) -> dict[str, Keep]:
        """The retention that kinds have declared themselves."""
        return {record.name: record.keep for record in await self.read(wire) if record.keep is not None}

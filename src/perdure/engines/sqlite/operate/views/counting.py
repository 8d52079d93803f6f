"""How many jobs match, counted spot by spot up to a cap."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace

from perdure.domain.jobs.ids import JobId
from perdure.domain.jobs.states import JobState
from perdure.engines.sqlite.database.database import Database
from perdure.engines.sqlite.database.transaction import Transaction
from perdure.engines.sqlite.operate.views.filters import Selector
from perdure.engines.sqlite.operate.views.queue_states import Spot, Spots
from perdure.storage.operate.counting import Looked, check_count, tallies, tallies_of_few
from perdure.storage.records import JobFilter, Tally

_STATE: Final = {"ready": "'ready'", "lease": "'running'"}


class CountingPart:
    """Counts jobs of the store."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._selector = Selector(database)
        self._spots = Spots(database)

    async def count(self, which: JobFilter, by: Sequence[str] = (), cap: int = 10_000) -> list[Tally]:
        """How many jobs match, in all or by group."""
        groups = check_count(by, cap)
        has_few = which.ids is not None or which.mark is not None

        def look(transaction: Transaction) -> list[Tally]:
            if has_few:
                few = self._few(transaction, which, cap + 1)
                looked = self._where(transaction, replace(which, ids=few[:cap]))
                return tallies_of_few(looked, groups, capped=len(few) > cap)
            looked = [
                part
                for spot in self._spots.of(transaction, which)
                for part in self._look_at(transaction, spot, which, cap, by_kind="kind" in groups)
            ]
            return tallies(looked, groups, cap)

        return await self._database.read(look)

    def _look_at(
        self, transaction: Transaction, spot: Spot, which: JobFilter, cap: int, *, by_kind: bool
    ) -> list[Looked]:
        condition, params = self._selector.residue(which, spot.place)
        columns = f"place.queue, {'job.kind' if by_kind else 'NULL'} AS kind, {condition or 'true'} AS hit"
        looked_at = self._spots.looked_at(spot, columns, with_job=by_kind or bool(condition))
        sums = "seen.queue, seen.kind, COALESCE(SUM(seen.hit), 0), COUNT(*)"
        sql = f"SELECT {sums} FROM ({looked_at}) AS seen GROUP BY seen.queue, seen.kind"
        rows = transaction.run(sql, spot.params | params | {"cap": cap})
        return [Looked(spot.state, *row) for row in rows]

    def _few(self, transaction: Transaction, which: JobFilter, most: int) -> Sequence[JobId]:
        """The jobs that are named, or have the mark."""
        return which.ids if which.ids is not None else self._spots.marked(transaction, which.mark or "", None, most)

    def _where(self, transaction: Transaction, which: JobFilter) -> list[Looked]:
        """Where each of these jobs stands, as far as it matches."""
        found: Counter[tuple[str, str, str]] = Counter()
        for selection in self._selector.select(which):
            sql = f"SELECT {_STATE.get(selection.place, 'place.state')}, job.queue, job.kind {selection.newest_first}"
            rows = transaction.run(sql, selection.params | {"limit": len(which.ids or ())})
            found.update((state, queue, kind) for state, queue, kind in rows)
        return [Looked(JobState(state), queue, kind, jobs, jobs) for (state, queue, kind), jobs in found.items()]

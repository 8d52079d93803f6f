"""How many jobs match, counted by queue and state up to a cap."""

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
from perdure.engines.sqlite.operate.views.queue_states import DEAD_ONLY, QueueState, QueueStates
from perdure.storage.operate.counting import Looked, check_count, tallies, tallies_of_few
from perdure.storage.records import JobFilter, Tally

_STATE: Final = {"ready": "'ready'", "lease": "'running'"}


class CountingPart:
    """Counts jobs of the store."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._selector = Selector(database)
        self._queue_states = QueueStates(database)

    async def count(self, which: JobFilter, by: Sequence[str] = (), cap: int = 10_000) -> list[Tally]:
        """How many jobs match, in all or by group."""
        groups = check_count(by, cap)
        has_few = which.ids is not None or which.mark is not None or which.fingerprint is not None

        def look(transaction: Transaction) -> list[Tally]:
            if has_few:
                few = self._few(transaction, which, cap + 1)
                looked = self._where(transaction, replace(which, ids=few[:cap]))
                return tallies_of_few(looked, groups, capped=len(few) > cap)
            return tallies(self._looked(transaction, which, cap, by_kind="kind" in groups), groups, cap)

        return await self._database.read(look)

    def _looked(self, transaction: Transaction, which: JobFilter, cap: int, *, by_kind: bool) -> list[Looked]:
        def at(queue_states: list[QueueState]) -> list[Looked]:
            return [part for each in queue_states for part in self._look_at(transaction, each, which, cap, by_kind)]

        if which.states == DEAD_ONLY and which.kind is not None and not which.has_window:
            found = at(self._queue_states.dead_of_kind(which))
            if sum(part.jobs for part in found) <= cap:  # else some queue is not read to its end
                return found
        return at(self._queue_states.of(transaction, which))

    def _look_at(
        self, transaction: Transaction, queue_state: QueueState, which: JobFilter, cap: int, by_kind: bool
    ) -> list[Looked]:
        residue = self._selector.residue(which, queue_state.place, queue_state.state)
        columns = f"place.queue, {'job.kind' if by_kind else 'NULL'} AS kind, {residue.condition or 'true'} AS hit"
        looked_at = self._queue_states.looked_at(queue_state, columns, with_job=by_kind or residue.with_job)
        sums = "seen.queue, seen.kind, COALESCE(SUM(seen.hit), 0), COUNT(*)"
        sql = f"SELECT {sums} FROM ({looked_at}) AS seen GROUP BY seen.queue, seen.kind"
        rows = transaction.run(sql, queue_state.params | residue.params | {"cap": cap})
        return [Looked(queue_state.state, *row) for row in rows]

    def _few(self, transaction: Transaction, which: JobFilter, most: int) -> Sequence[JobId]:
        """The jobs that are named, or have the mark or the fingerprint."""
        return which.ids if which.ids is not None else self._queue_states.picked(transaction, which, None, most)

    def _where(self, transaction: Transaction, which: JobFilter) -> list[Looked]:
        """Where each of these jobs stands, as far as it matches."""
        found: Counter[tuple[str, str, str]] = Counter()
        for selection in self._selector.select(which):
            sql = f"SELECT {_STATE.get(selection.place, 'place.state')}, job.queue, job.kind {selection.newest_first}"
            rows = transaction.run(sql, selection.params | {"limit": len(which.ids or ())})
            found.update((state, queue, kind) for state, queue, kind in rows)
        return [Looked(JobState(state), queue, kind, jobs, jobs) for (state, queue, kind), jobs in found.items()]

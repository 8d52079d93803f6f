"""What can be seen from outside, read beside all writing."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from msgspec.structs import replace

from perdure.domain.gate import Cost
from perdure.domain.jobs.ids import JobId
from perdure.domain.jobs.job import Attempt, JobView
from perdure.domain.jobs.states import JobState
from perdure.domain.stored_words import read_word
from perdure.engines.sqlite.database.database import Database
from perdure.engines.sqlite.database.rows import attempt_of, from_document, view_of
from perdure.engines.sqlite.database.transaction import Transaction
from perdure.engines.sqlite.operate.views.filters import Selection, Selector
from perdure.engines.sqlite.operate.views.queue_states import Spots
from perdure.storage.records import Count, JobFilter, Page

_LONG_LINE: Final = 20_000
_FEW: Final = 10_000  # jobs that are looked up one by one sooner than found along all others
_BATCH: Final = 500
_ID: Final = "SELECT place.job_id"


class InsightPart:
    """Insight into the store."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._sql = database.statements("operate/views/insight.sql")
        self._selector = Selector(database)
        self._spots = Spots(database)

    async def now(self) -> datetime:
        """The clock by which jobs become due."""
        return self._database.clock.now()

    async def job(self, job_id: JobId) -> JobView | None:
        """One job, wherever it stands."""
        found = await self.jobs(JobFilter(ids=(job_id,)), Page(limit=1))
        return found[0] if found else None

    async def jobs(self, which: JobFilter, page: Page) -> list[JobView]:
        """The jobs that match, highest id first: the best of each place, put together."""
        reach = page.skipped + page.limit

        def look(transaction: Transaction) -> list[JobView]:
            if not page.skipped:
                return self._views(transaction, self._narrowed(transaction, which), page.before, page.limit)
            ids = self._ids(transaction, self._narrowed(transaction, which), page.before, reach)[page.skipped :]
            return self._views(transaction, JobFilter(ids=ids), None, page.limit) if ids else []

        def look_at_marked(transaction: Transaction) -> list[JobView]:
            seen = self._marked(transaction, which, page.before, reach)[page.skipped :]
            return self._views(transaction, JobFilter(ids=seen), None, page.limit) if seen else []

        return await self._database.read(look if which.mark is None or which.ids is not None else look_at_marked)

    async def attempts(self, job_id: JobId) -> list[Attempt]:
        """The attempts of a job that did not succeed, oldest first."""

        def look(transaction: Transaction) -> list[Attempt]:
            ((document,),) = transaction.run(self._sql["attempts"], {"job_id": job_id})
            return [attempt_of(row) for row in from_document(document)]

        return await self._database.read(look)

    async def costs(self, job_id: JobId) -> list[Cost]:
        """What a job has spent from each budget."""

        def look(transaction: Transaction) -> list[Cost]:
            return [Cost(*row) for row in transaction.run(self._sql["costs"], {"job_id": job_id})]

        return await self._database.read(look)

    async def key_holder(self, key: str) -> JobId | None:
        """The job that holds a unique key now."""

        def look(transaction: Transaction) -> JobId | None:
            rows = transaction.run(self._sql["key_holder"], {"key": key, "now": transaction.now})
            return JobId(rows[0][0]) if rows else None

        return await self._database.read(look)

    async def counts(self, cap: int = 10_000) -> list[Count]:
        """How many jobs stand where; beyond the cap nothing is counted."""

        def look(transaction: Transaction) -> list[Count]:
            counted = []
            for statement, params in (
                ("count_ready", {"cap": cap}),
                ("count_lease", {}),
                ("count_parked", {"cap": cap}),
                ("count_finished", {"cap": cap}),
            ):
                for queue, state, jobs in transaction.run(self._sql[statement], params):
                    counted.append(Count(queue, read_word(JobState, state), min(jobs, cap), capped=jobs > cap))
            return sorted(counted, key=lambda count: (count.queue, count.state))

        return await self._database.read(look)

    def _narrowed(self, transaction: Transaction, which: JobFilter) -> JobFilter:
        """The same filter by ids, if few jobs have finished in the time asked for: all others are passed over."""
        if not which.has_window or which.ids is not None:
            return which
        ids = self._spots.finished_in_window(transaction, which, _FEW)
        return which if ids is None else replace(which, ids=ids)

    def _marked(self, transaction: Transaction, which: JobFilter, before: JobId | None, limit: int) -> list[JobId]:
        """The newest jobs with the mark, a batch after the other until there are enough that match."""
        found: list[JobId] = []
        while len(found) < limit and (ids := self._spots.marked(transaction, which.mark or "", before, _BATCH)):
            found += self._ids(transaction, replace(which, ids=ids), None, limit - len(found))
            before = ids[-1]
        return found

    def _views(self, transaction: Transaction, which: JobFilter, before: JobId | None, limit: int) -> list[JobView]:
        seen: list[JobView] = []
        for selection in self._selections(transaction, which, before):
            chosen = f"{self._sql[selection.place]} {selection.newest_first}"
            ((document,),) = transaction.run(f"{self._sql['gather']} ({chosen})", selection.params | {"limit": limit})
            seen += [view_of(row) for row in from_document(document)]
        seen.sort(key=lambda view: view.id, reverse=True)
        return seen[:limit]

    def _ids(self, transaction: Transaction, which: JobFilter, before: JobId | None, limit: int) -> list[JobId]:
        """The same as `_views`, of which only the ids are read."""
        seen: list[JobId] = []
        for selection in self._selections(transaction, which, before):
            rows = transaction.run(f"{_ID} {selection.newest_first}", selection.params | {"limit": limit})
            seen += [row[0] for row in rows]
        return sorted(seen, reverse=True)[:limit]

    def _selections(self, transaction: Transaction, which: JobFilter, before: JobId | None) -> Iterator[Selection]:
        for selection in self._selector.select(which, also={} if before is None else {"before": before}):
            is_line = selection.place == "ready"
            if is_line and transaction.run(self._sql["is_long"], {"length": _LONG_LINE})[0][0]:
                # A long line would have to be sorted by id. The newest jobs stand in it, so look among the newest.
                yield self._selector.selection("ready", (), selection.params, by_job=True)
            else:
                yield selection

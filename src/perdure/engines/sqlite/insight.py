"""What can be seen from outside, read beside all writing."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from perdure.domain.gate import Cost
from perdure.domain.ids import JobId
from perdure.domain.job import Attempt, JobView
from perdure.domain.states import JobState
from perdure.domain.words import read_word
from perdure.engines.sqlite.database import Database
from perdure.engines.sqlite.rows import attempt_of, from_document, view_of
from perdure.engines.sqlite.selection import Selection, Selector
from perdure.engines.sqlite.transaction import Transaction
from perdure.storage.records import Count, JobFilter, Page

_LONG_LINE: Final = 20_000


class InsightPart:
    """Insight into the store."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._sql = database.statements("insight.sql")
        self._selector = Selector(database)

    async def now(self) -> datetime:
        """The clock by which jobs become due."""
        return self._database.clock.now()

    async def job(self, job_id: JobId) -> JobView | None:
        """One job, wherever it stands."""
        found = await self.jobs(JobFilter(ids=(job_id,)), Page(limit=1))
        return found[0] if found else None

    async def jobs(self, which: JobFilter, page: Page) -> list[JobView]:
        """The jobs that match, highest id first: the best of each place, put together."""
        also = {} if page.before is None else {"before": page.before}
        selections = self._selector.select(which, also=also)

        def look(transaction: Transaction) -> list[JobView]:
            seen = [view for selection in selections for view in self._see(transaction, selection, page.limit)]
            seen.sort(key=lambda view: view.id, reverse=True)
            return seen[: page.limit]

        return await self._database.read(look)

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

    def _see(self, transaction: Transaction, selection: Selection, limit: int) -> list[JobView]:
        if selection.place == "ready" and transaction.run(self._sql["is_long"], {"length": _LONG_LINE})[0][0]:
            # A long line would have to be sorted by id. The newest jobs stand in it, so look among the newest.
            selection = self._selector.selection("ready", (), selection.params, by_job=True)
        chosen = f"{self._sql[selection.place]} {selection.newest_first}"
        ((document,),) = transaction.run(f"{self._sql['gather']} ({chosen})", selection.params | {"limit": limit})
        return [view_of(row) for row in from_document(document)]

"""What can be seen from outside."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Final

from msgspec.structs import replace

from perdure.clock import Clock
from perdure.domain.gate import Cost
from perdure.domain.jobs.ids import JobId
from perdure.domain.jobs.job import Attempt, JobView
from perdure.domain.jobs.states import JobState
from perdure.domain.stored_words import read_word
from perdure.engines.postgres.database.connections import Pool
from perdure.engines.postgres.database.naming import Naming
from perdure.engines.postgres.database.rows import Row, attempt_of, view_of
from perdure.engines.postgres.operate.views.filters import Selection, select
from perdure.engines.postgres.operate.views.queue_states import Spots
from perdure.storage.records import Count, JobFilter, Page

_FEW: Final = 10_000  # jobs that are looked up one by one sooner than found along all others
_BATCH: Final = 500


class InsightPart:
    """Looks at jobs without touching them."""

    def __init__(self, naming: Naming, pool: Pool, clock: Clock | None) -> None:
        self._statements = naming.statements("operate/views/insight.sql")
        self._pool = pool
        self._clock = clock
        self._spots = Spots(naming, pool)

    async def now(self) -> datetime:
        """The database's clock."""
        now = self._clock.now() if self._clock else None
        [[moment]] = await self._pool.rows(self._statements["now"], {"now": now})
        found: datetime = moment
        return found

    async def job(self, job_id: JobId) -> JobView | None:
        """One job, wherever it stands."""
        views = await self.jobs(JobFilter(ids=(job_id,)), Page(1))
        return views[0] if views else None

    async def jobs(self, which: JobFilter, page: Page) -> list[JobView]:
        """The jobs that match, newest (highest id) first."""
        if which.ids is None and which.mark is not None:
            ids = await self._marked(which, page.before, page.skipped + page.limit)
            return await self._views(JobFilter(ids=ids[page.skipped :]), Page(page.limit))
        if which.ids is None and which.has_window:
            window = await self._spots.finished_in_window(which, _FEW)
            which = which if window is None else replace(which, ids=window)
        return await self._views(which, page)

    async def _marked(self, which: JobFilter, before: JobId | None, limit: int) -> list[JobId]:
        """The newest jobs with the mark, a batch after the other until there are enough that match."""
        found: list[JobId] = []
        while len(found) < limit and (ids := await self._spots.marked(which.mark or "", before, _BATCH)):
            rows = await self._select("id", replace(which, ids=ids), Page(limit - len(found)))
            found += [row[0] for row in rows]
            before = ids[-1]
        return found

    async def _views(self, which: JobFilter, page: Page) -> list[JobView]:
        return [view_of(row) for row in await self._select("*", which, page)]

    async def _select(self, columns: str, which: JobFilter, page: Page) -> list[Row]:
        selection = select(which)
        if page.before is not None:
            selection.params["before"] = page.before
            for conditions in selection.conditions.values():
                conditions.append("p.job_id < %(before)s::uuid")
        if not selection.conditions or which.ids == ():
            return []
        selection.params["limit"] = page.skipped + page.limit
        if page.skipped:
            selection.params["skipped"] = page.skipped
        sql = f"SELECT {columns} {jobs_query(self._statements, selection, 'DESC', skips=page.skipped > 0)}"
        return await self._pool.rows(sql, selection.params)

    async def attempts(self, job_id: JobId) -> list[Attempt]:
        """The attempts of a job that did not succeed, oldest first, over all its lives."""
        return [attempt_of(row) for row in await self._pool.rows(self._statements["attempts"], {"id": job_id})]

    async def costs(self, job_id: JobId) -> list[Cost]:
        """What a job has spent from each budget."""
        return [Cost(*row) for row in await self._pool.rows(self._statements["costs"], {"id": job_id})]

    async def key_holder(self, key: str) -> JobId | None:
        """The job that holds a unique key now."""
        params = {"key": key, "now": self._clock.now() if self._clock else None}
        rows = await self._pool.rows(self._statements["key_holder"], params)
        return JobId(rows[0][0]) if rows else None

    async def counts(self, cap: int = 10_000) -> list[Count]:
        """How many jobs stand where, at most `cap` counted for each queue and state."""
        rows = await self._pool.rows(self._statements["counts"], {"cap": cap})
        return [Count(queue, read_word(JobState, state), min(jobs, cap), jobs > cap) for queue, state, jobs in rows]


def jobs_query(statements: Mapping[str, str], selection: Selection, order: str, *, skips: bool = False) -> str:
    """A FROM clause of the jobs selected, in the order of their ids, up to `%(limit)s`; `skips`: behind `%(skipped)s`.

    Each place is read along its own index of ids; the order of hexadecimal text in "C" is that of the ids.
    """
    parts = []
    for table, conditions in selection.conditions.items():
        died = statements["or_died"] if table == "finished" else ""
        met = [statements["of_ref"], *conditions] if "ref" in selection.params else conditions
        where = f"WHERE {' AND '.join(met)}" if met else ""
        select_ = f"{statements[f'view_{table}']} {statements['with_record']} {died} {where}"
        parts.append(f"({select_} ORDER BY p.job_id {order} LIMIT %(limit)s::bigint)")
    page = statements["page_behind" if skips else "page"]
    return f'FROM ({" UNION ALL ".join(parts)}) v ORDER BY id COLLATE "C" {order} {page}'

"""Queries about jobs."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from msgspec.structs import replace

from perdure.clock import Clock
from perdure.domain.gate import Cost
from perdure.domain.gate_record import GateRecord
from perdure.domain.jobs.ids import JobId
from perdure.domain.jobs.job import Attempt, JobView
from perdure.domain.jobs.states import JobState
from perdure.domain.stored_words import read_word
from perdure.engines.postgres.database.connections import Pool
from perdure.engines.postgres.database.naming import Naming
from perdure.engines.postgres.database.rows import Row, attempt_of, view_of
from perdure.engines.postgres.operate.views.conditions import where_conditions
from perdure.engines.postgres.operate.views.filters import Selection, places_walked, select
from perdure.engines.postgres.operate.views.queue_states import AFTER_ALL, QueueStates, is_picked
from perdure.engines.shared.batch_sizes import JOBS_LOOKED_UP_SINGLY, JOBS_PER_LOOK
from perdure.engines.shared.operate.bounds import Bounds
from perdure.policy.limits.gate_record import StoredRecord, records_of
from perdure.storage.records import Count, JobFilter, Page, Reach, Searched


class InsightPart:
    """Looks at jobs without touching them."""

    def __init__(self, naming: Naming, pool: Pool, clock: Clock | None) -> None:
        self._statements = naming.statements("operate/views/insight.sql")
        self._pool = pool
        self._clock = clock
        self._queue_states = QueueStates(naming, pool)

    async def now(self) -> datetime:
        """The database's clock."""
        now = self._clock.now() if self._clock else None
        [[moment]] = await self._pool.rows(self._statements["now"], {"now": now})
        found: datetime = moment
        return found

    async def job(self, job_id: JobId) -> JobView | None:
        """One job, in any place."""
        views = await self.jobs(JobFilter(ids=(job_id,)), Page(1))
        return views[0] if views else None

    async def jobs(self, which: JobFilter, page: Page) -> list[JobView]:
        """The jobs that match, newest (highest id) first."""
        if which.ids is None and is_picked(which):
            ids = await self._picked(which, page.before, page.skipped + page.limit)
            return await self._views(JobFilter(ids=ids[page.skipped :]), Page(page.limit))
        if which.ids is None and which.has_window:
            window = await self._queue_states.finished_in_window(which, JOBS_LOOKED_UP_SINGLY)
            which = which if window is None else replace(which, ids=window)
        return await self._views(which, page)

    async def search(self, which: JobFilter, page: Page, reach: Reach) -> Searched:
        """The same, within this reach."""
        if page.number is not None or not which.must_look:
            return Searched(await self.jobs(which, page))
        if not is_picked(which) and which.has_window:
            window = await self._queue_states.finished_in_window(which, JOBS_LOOKED_UP_SINGLY)
            if window is not None:
                return Searched(await self._views(replace(which, ids=window), page))
        walk = self._walk_picked if is_picked(which) else self._walk
        found, behind = await walk(which, page, Bounds(reach))
        if behind is None:
            return Searched(found)
        made_at = await self._pool.rows(self._statements["made_at"], {"id": behind})
        return Searched(found, behind, made_at[0][0] if made_at else None)

    async def _walk(self, which: JobFilter, page: Page, bounds: Bounds) -> tuple[list[JobView], JobId | None]:
        """The jobs that match, stretch by stretch, and behind which job the search ended early."""
        found: list[JobView] = []
        before = page.before
        while True:
            floor = await self._floor(which, before, bounds.step)
            found += await self._views(which, Page(page.limit - len(found), before), floor)
            if floor is None or len(found) >= page.limit:
                return found, None
            before = floor
            if bounds.are_reached():
                return found, before

    async def _floor(self, which: JobFilter, before: JobId | None, step: int) -> JobId | None:
        """The lowest id of a step that reads at most so many jobs per place; None: the rest fits into one step."""
        sql = floor_query(self._statements, which)
        rows = await self._pool.rows(sql, {"before": before or AFTER_ALL, "step": step - 1}) if sql else []
        return JobId(rows[0][0]) if rows else None

    async def _walk_picked(self, which: JobFilter, page: Page, bounds: Bounds) -> tuple[list[JobView], JobId | None]:
        """The same along the jobs that an index leads to."""
        found: list[JobView] = []
        before, step = page.before, min(page.limit, JOBS_PER_LOOK)  # all of them match, unless more is asked
        while ids := await self._queue_states.picked(which, before, step):
            found += await self._views(replace(which, ids=ids), Page(page.limit - len(found)))
            before = ids[-1]
            if len(found) >= page.limit or len(ids) < step:
                break
            if bounds.are_reached(len(ids)):
                return found, before
            step = min(2 * step, JOBS_PER_LOOK)
        return found, None

    async def _picked(self, which: JobFilter, before: JobId | None, limit: int) -> list[JobId]:
        """The newest jobs that an index leads to, a batch after the other until there are enough that match."""
        found: list[JobId] = []
        step = min(limit, JOBS_PER_LOOK)
        while len(found) < limit and (ids := await self._queue_states.picked(which, before, step)):
            rows = await self._select("id", replace(which, ids=ids), Page(limit - len(found)))
            found += [row[0] for row in rows]
            before, step = ids[-1], min(2 * step, JOBS_PER_LOOK)
        return found

    async def _views(self, which: JobFilter, page: Page, floor: JobId | None = None) -> list[JobView]:
        return [view_of(row) for row in await self._select("*", which, page, floor)]

    async def _select(self, columns: str, which: JobFilter, page: Page, floor: JobId | None = None) -> list[Row]:
        selection = select(which)
        if floor is not None:
            selection.params["floor"] = floor
            for conditions in selection.conditions.values():
                conditions.append("p.job_id >= %(floor)s::uuid")
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
        """The attempts of a job that did not succeed, oldest first, including those before a requeue."""
        return [attempt_of(row) for row in await self._pool.rows(self._statements["attempts"], {"id": job_id})]

    async def costs(self, job_id: JobId) -> list[Cost]:
        """What a job has spent from each budget."""
        return [Cost(*row) for row in await self._pool.rows(self._statements["costs"], {"id": job_id})]

    async def gate_records(self, job_id: JobId) -> list[GateRecord]:
        """The gates that the attempts of a job have met."""
        rows = await self._pool.rows(self._statements["gate_records"], {"id": job_id})
        return records_of(StoredRecord(*row) for row in rows)

    async def key_holder(self, key: str) -> JobId | None:
        """The job that holds a unique key now."""
        params = {"key": key, "now": self._clock.now() if self._clock else None}
        rows = await self._pool.rows(self._statements["key_holder"], params)
        return JobId(rows[0][0]) if rows else None

    async def counts(self, cap: int = 10_000) -> list[Count]:
        """Counts of jobs by queue and state, at most `cap` for each."""
        rows = await self._pool.rows(self._statements["counts"], {"cap": cap})
        return [Count(queue, read_word(JobState, state), min(jobs, cap), jobs > cap) for queue, state, jobs in rows]


def floor_query(statements: Mapping[str, str], which: JobFilter) -> str:
    """What finds the highest of the ids that lie so many jobs behind another one, in each place that is looked at."""
    parts = [f"({statements[f'walk_{place}']})" for place in places_walked(which)]
    return f"SELECT w.id::text FROM ({' UNION ALL '.join(parts)}) w ORDER BY w.id DESC LIMIT 1" if parts else ""


def jobs_query(statements: Mapping[str, str], selection: Selection, order: str, *, skips: bool = False) -> str:
    """A FROM clause of the jobs selected, in the order of their ids, up to `%(limit)s`; `skips`: behind `%(skipped)s`.

    Each place is read along its own index of ids; the order of hexadecimal text in "C" is that of the ids.
    """
    parts = []
    for table, conditions in selection.conditions.items():
        is_finished = table == "finished"
        died = statements["or_died"] if is_finished else ""
        met = [*conditions, *where_conditions(selection.where, statements["json_of"], has_result=is_finished)]
        if "ref" in selection.params:
            met.insert(0, statements["of_ref"])
        where = f"WHERE {' AND '.join(met)}" if met else ""
        select_ = f"{statements[f'view_{table}']} {statements['with_record']} {died} {where}"
        parts.append(f"({select_} ORDER BY p.job_id {order} LIMIT %(limit)s::bigint)")
    page = statements["page_behind" if skips else "page"]
    return f'FROM ({" UNION ALL ".join(parts)}) v ORDER BY id COLLATE "C" {order} {page}'

"""Views of the whole system: queues, kinds, workers, statistics, the audit trail, problems that need a person."""

from __future__ import annotations

from datetime import datetime

from perdure.clock import SystemClock
from perdure.domain.declared_limits import DeclaredLimit
from perdure.domain.duration import Duration
from perdure.domain.operate.statistics import Statistics
from perdure.domain.worker import WorkerView
from perdure.operate.attention.attention import examine_database, find_needs, worst_first
from perdure.operate.attention.need import Need
from perdure.operate.audit_trail import read_trail
from perdure.operate.desk_base import DeskBase
from perdure.operate.records import AuditPage, Overview
from perdure.operate.views.comparison import Comparison, compare
from perdure.operate.views.kind_views import KindView, kind_views
from perdure.operate.views.queue_views import QueueView, queue_views
from perdure.operate.views.statistics import Grouping, read_statistics, read_trends
from perdure.storage.operate.audit import AuditFilter


class SystemViews(DeskBase):
    """The part of the desk that shows the system as a whole."""

    async def overview(self) -> Overview:
        """Counts of jobs by queue and state, and the workers."""
        counts = await self._store.counts()
        return Overview(await self._store.now(), tuple(counts), tuple(await self.workers()))

    async def attention(self, *, database: bool = False) -> list[Need]:
        """Problems that need a person, the worst first; empty if all is well. Reads a bounded number of jobs.

        `database`: with the problems that `perdure doctor` finds in the database itself.
        """
        needs = await find_needs(self._store)
        return worst_first([*await self.database_problems(), *needs]) if database else needs

    async def database_problems(self) -> list[Need]:
        """Problems of the database itself, such as settings that lose commits, or a wrong clock."""
        return await examine_database(self._store, SystemClock())

    async def workers(self) -> list[WorkerView]:
        """All workers that are not pruned yet, running ones first."""
        return await self._store.workers()

    async def compare(
        self,
        span: Duration = "1h",
        ago: Duration | None = None,
        *,
        by: Grouping | None = None,
        queue: str | None = None,
        kind: str | None = None,
    ) -> Comparison:
        """Statistics of the last `span`, and of the span of that length that ended `ago` earlier.

        Without `ago` that is the span directly before: `compare("1h", "1d")` is this hour and the same hour yesterday.
        No points, no job is read. Beyond two days back a span has at least 6 hours.
        """
        return await compare(self._store, span, ago, by=by, queue=queue, kind=kind)

    async def queues(self, span: Duration = "1h", *, cap: int = 10_000, times: bool = True) -> list[QueueView]:
        """All queues by name: waiting and running jobs, workers, and statistics of the last `span`.

        At most `cap` jobs are read in each queue and state. With times=False points only count attempts, which is
        faster; wait and run times are then those of the whole span.
        """
        return await queue_views(self._store, span, cap, times=times)

    async def kinds(self, span: Duration = "1h", *, cap: int = 1_000) -> list[KindView]:
        """All recently seen kinds by name, with statistics of the last `span`.

        At most `cap` dead letters are read in each queue.
        """
        return await kind_views(self._store, span, cap)

    async def limits(self) -> dict[str, tuple[DeclaredLimit, ...]]:
        """The rates, slots, budgets and breakers that kinds declare, by kind, as their workers have stored them."""
        return {record.name: record.limits for record in await self._store.kinds() if record.limits}

    async def statistics(
        self,
        span: Duration = "1h",
        *,
        by: Grouping | None = None,
        queue: str | None = None,
        kind: str | None = None,
        points: bool = True,
        times: bool = True,
    ) -> Statistics:
        """How attempts ended in the last `span`, how long jobs waited and how long they ran.

        One group for all, or one for each queue or kind (`by`) with counts, by name; `queue` and `kind` filter. Points
        are a minute apart for up to 3 hours, 15 minutes for a day, an hour for a week. Groups by queue or kind have at
        most 60 of them: an hour apart for a day, 6 hours for a week. points=False leaves them out. With times=False
        points of groups hold only counts, which is faster: wait and run times are those of the whole span. Workers
        write every few seconds. No job is read.
        """
        if by is not None and points and not times:
            return await read_trends(self._store, span, await self._store.now(), by=by, queue=queue, kind=kind)
        return await read_statistics(self._store, span, by=by, queue=queue, kind=kind, points=points)

    async def audit(
        self,
        *,
        job: str | None = None,
        actor: str | None = None,
        action: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        source: str | None = None,
        bulk: str | None = None,
        limit: int = 50,
        before: int | None = None,
    ) -> AuditPage:
        """Who did what, newest first: about a job, by an actor, of an action, from `since` on and before `until`.

        `source` is a surface, such as "cli", with any address or with one; `bulk` the id of a bulk command. At most 500
        entries; the next page is `before=page.next`. Entries stay when their jobs are deleted.
        """
        job_id = None if job is None else await self._id_of(job)
        which = AuditFilter(
            job_id=job_id, actor=actor, action=action, since=since, until=until, source=source, bulk=bulk
        )
        return await read_trail(self._store, which, limit, before)

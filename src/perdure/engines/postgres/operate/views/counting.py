"""How many jobs match, counted by queue and state up to a cap."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from perdure.domain.jobs.ids import JobId
from perdure.domain.jobs.states import JobState
from perdure.engines.postgres.database.connections import Pool
from perdure.engines.postgres.database.naming import Naming
from perdure.engines.postgres.operate.views.conditions import where_conditions, where_params
from perdure.engines.postgres.operate.views.filters import residue, select
from perdure.engines.postgres.operate.views.insight import jobs_query
from perdure.engines.postgres.operate.views.queue_states import QueueStates, params_of, places_of
from perdure.storage.operate.counting import Looked, check_count, tallies, tallies_of_few
from perdure.storage.records import JobFilter, Tally


class CountingPart:
    """Counts jobs of the store."""

    def __init__(self, naming: Naming, pool: Pool) -> None:
        self._views = naming.statements("operate/views/insight.sql")
        self._pool = pool
        self._queue_states = QueueStates(naming, pool)

    async def count(self, which: JobFilter, by: Sequence[str] = (), cap: int = 10_000) -> list[Tally]:
        """How many jobs match, in all or by group."""
        groups = check_count(by, cap)
        if which.ids is not None or which.mark is not None or which.fingerprint is not None:
            few = await self._few(which, cap + 1)
            looked = await self._where(replace(which, ids=few[:cap]))
            return tallies_of_few(looked, groups, capped=len(few) > cap)
        sql, params = count_query(self._queue_states, which, cap, by_kind="kind" in groups)
        rows = await self._pool.rows(sql, params) if sql else []
        return tallies([Looked(JobState(state), *rest) for state, *rest in rows], groups, cap)

    async def _few(self, which: JobFilter, most: int) -> Sequence[JobId]:
        """The jobs that are named, or have the mark or the fingerprint."""
        return which.ids if which.ids is not None else await self._queue_states.picked(which, None, most)

    async def _where(self, which: JobFilter) -> list[Looked]:
        """Where each of these jobs stands, as far as it matches."""
        selection = select(which)
        if not selection.conditions or not which.ids:
            return []
        found = f"SELECT state, queue, kind {jobs_query(self._views, selection, 'DESC')}"
        sql = f"SELECT v.state, v.queue, v.kind, count(*) FROM ({found}) v GROUP BY v.state, v.queue, v.kind"
        rows = await self._pool.rows(sql, {**selection.params, "limit": len(which.ids)})
        return [Looked(JobState(state), queue, kind, jobs, jobs) for state, queue, kind, jobs in rows]


def count_query(
    queue_states: QueueStates, which: JobFilter, cap: int, *, by_kind: bool
) -> tuple[str, dict[str, object]]:
    """What counts the jobs of each queue state: those that match, and all that were read; no text: none can match."""
    places = places_of(which)
    params = params_of(which, frozenset().union(*(states for _, states in places)), cap)
    params |= where_params(which.where)
    conditions = [*residue(which, params), *where_conditions(which.where, queue_states.sql["json_of"])]
    joined = queue_states.sql["with_job"] if by_kind or conditions else ""
    if which.error is not None or any(condition.field == "error" for condition in which.where):
        joined += f" {queue_states.sql['with_error']}"
    kind, hit = "j.kind" if by_kind else "NULL::text", " AND ".join(conditions) or "true"
    columns = f"p.state, p.queue, {kind} AS kind, count(*) FILTER (WHERE {hit}) AS matches, count(*) AS jobs"
    groups = f"p.state, p.queue{', j.kind' if by_kind else ''}"
    arms = []
    for place, _ in places:
        if joined or place.table == "lease":
            record = queue_states.sql["with_kind"] if place.table == "finished" and not conditions else joined
            arms.append(f"SELECT {columns} {queue_states.looked_at(place, record)} GROUP BY {groups}")
        else:
            arms.append(queue_states.counted_in(place))
    return (f"{queue_states.sql['spots']} {' UNION ALL '.join(arms)}" if arms else ""), params

"""Spots: one state of one queue each, the pieces in which jobs are counted, and found by the time they have finished.

A spot is one stretch of an index, and of each no more is read than was asked for. Jobs with a mark are found along an
index of their own.
"""

from __future__ import annotations

from typing import Final

from perdure.domain.jobs.ids import JobId
from perdure.domain.jobs.states import FINAL, JobState
from perdure.engines.postgres.database.arrays import text_array
from perdure.engines.postgres.database.connections import Pool
from perdure.engines.postgres.database.naming import Naming
from perdure.engines.postgres.operate.views.filters import PLACES, Place
from perdure.storage.records import JobFilter

_AFTER_ALL: Final = "ffffffff-ffff-ffff-ffff-ffffffffffff"


class Spots:
    """Makes statements that look into spots, and asks some of them."""

    def __init__(self, naming: Naming, pool: Pool) -> None:
        self.sql = naming.statements("operate/views/counting.sql")
        self._pool = pool

    async def finished_in_window(self, which: JobFilter, most: int) -> list[JobId] | None:
        """The jobs that have finished in the time asked for; None: there are more than `most`."""
        states = FINAL if which.states is None else FINAL & which.states
        rows = await self._pool.rows(self.window_query(), params_of(which, states, most)) if states else []
        return None if len(rows) > most else [row[0] for row in rows]

    def window_query(self) -> str:
        """What finds the jobs that have finished in a time: one more than the cap at most."""
        finished = PLACES[-1]
        return f"{self.sql['spots']} SELECT p.job_id::text {self.looked_at(finished)} LIMIT %(cap)s::bigint + 1"

    async def marked(self, mark: str, before: JobId | None, limit: int) -> list[JobId]:
        """Jobs with this mark, newest first, behind `before`."""
        params = {"mark": mark, "before": before or _AFTER_ALL, "limit": limit}
        return [row[0] for row in await self._pool.rows(self.sql["marked"], params)]

    def looked_at(self, place: Place, joined: str = "") -> str:
        """A FROM clause of at most `%(cap)s` + 1 jobs, `p`, of each spot `s` of one place."""
        look = self.sql[f"look_in_{place.table}"]
        return f"FROM {place.table}_spot s CROSS JOIN LATERAL ({look}) p {joined} {self.sql['of_filter']}"


def places_of(which: JobFilter) -> list[tuple[Place, frozenset[JobState]]]:
    """The places in which jobs may match, and in which states."""
    states = frozenset(JobState) if which.states is None else which.states
    if which.has_window:
        states &= FINAL
    return [(place, place.states & states) for place in PLACES if place.states & states]


def params_of(which: JobFilter, states: frozenset[JobState], cap: int) -> dict[str, object]:
    """What a look into spots is told besides the conditions on each job."""
    return {
        "states": text_array(sorted(states)),
        "queue": which.queue,
        "finished_after": which.finished_after,
        "finished_before": which.finished_before,
        "cap": cap,
    }

"""Counts jobs, and finds them by the time they finished, in one state of one queue at a time.

Each queue state is one range of an index, and no more of it is read than was asked for. Jobs with a mark have an index
of their own.
"""

from __future__ import annotations

from typing import Final

from perdure.domain.jobs.ids import JobId
from perdure.domain.jobs.states import FINAL, JobState
from perdure.engines.postgres.database.arrays import text_array
from perdure.engines.postgres.database.connections import Pool
from perdure.engines.postgres.database.naming import Naming
from perdure.engines.postgres.operate.views.filters import DEAD, PLACES, Place
from perdure.storage.records import JobFilter

AFTER_ALL: Final = "ffffffff-ffff-ffff-ffff-ffffffffffff"


class QueueStates:
    """Makes statements that look into queue states, and asks some of them."""

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

    async def picked(self, which: JobFilter, before: JobId | None, limit: int) -> list[JobId]:
        """Jobs that may match a filter that `is_picked`, newest first."""
        params: dict[str, object] = {"before": before or AFTER_ALL, "limit": limit}
        if which.mark is not None:
            name, params["mark"] = "marked", which.mark
        elif which.fingerprint is not None:
            name, params["fingerprint"] = "died_alike" if which.states == DEAD else "failed_alike", which.fingerprint
        else:
            name, params["kind"] = "died_of_kind", which.kind
        return [row[0] for row in await self._pool.rows(self.sql[name], params)]

    def looked_at(self, place: Place, joined: str = "") -> str:
        """A FROM clause of at most `%(cap)s` + 1 jobs, `p`, of each queue state `s` of one place."""
        look = self.sql[f"look_in_{place.table}"]
        return f"FROM {place.table}_spot s CROSS JOIN LATERAL ({look}) p {joined} {self.sql['of_filter']}"

    def counted_in(self, place: Place) -> str:
        """How many these are, for each queue state: jobs that all match are counted where they are read."""
        counted = f"SELECT count(*) AS jobs FROM ({self.sql[f'look_in_{place.table}']}) c"
        source = f"FROM {place.table}_spot s CROSS JOIN LATERAL ({counted}) p {self.sql['of_filter']} AND p.jobs > 0"
        return f"SELECT s.state, s.queue, NULL::text AS kind, p.jobs AS matches, p.jobs {source}"


def is_picked(which: JobFilter) -> bool:
    """Whether an index leads to few of the jobs: by mark, by fingerprint, or the dead letters of one kind."""
    is_dead_of_kind = which.states == DEAD and which.kind is not None and not which.has_window
    return which.mark is not None or which.fingerprint is not None or is_dead_of_kind


def places_of(which: JobFilter) -> list[tuple[Place, frozenset[JobState]]]:
    """The places in which jobs may match, and in which states."""
    states = frozenset(JobState) if which.states is None else which.states
    if which.has_window:
        states &= FINAL
    return [(place, place.states & states) for place in PLACES if place.states & states]


def params_of(which: JobFilter, states: frozenset[JobState], cap: int) -> dict[str, object]:
    """The parameters of a query of queue states, besides the conditions on each job."""
    return {
        "states": text_array(sorted(states)),
        "queue": which.queue,
        "finished_after": which.finished_after,
        "finished_before": which.finished_before,
        "cap": cap,
    }

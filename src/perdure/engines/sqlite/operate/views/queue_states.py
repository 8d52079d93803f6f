"""Spots: one state of one queue each, the pieces in which jobs are counted, and found by the time they have finished.

A spot is one stretch of an index, and of each no more is read than was asked for. Jobs with a mark are found along an
index of their own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from msgspec import Struct

from perdure.domain.jobs.ids import JobId
from perdure.domain.jobs.states import FINAL, PARKED, JobState
from perdure.engines.shared.database.instants import to_micros
from perdure.engines.sqlite.database.database import Database
from perdure.engines.sqlite.database.transaction import Transaction
from perdure.storage.records import JobFilter

_AFTER_ALL: Final = "g"  # sorts behind every id
_PLACES: Final = {JobState.READY: "ready", JobState.RUNNING: "lease"}


class Spot(Struct, frozen=True):
    """One state of one queue, of running jobs all queues: their table, pieces of a SELECT, and the values to bind."""

    state: JobState
    place: str
    source: str
    where: str
    params: dict[str, Any]


class Spots:
    """Finds the spots of one database, and jobs in them."""

    def __init__(self, database: Database) -> None:
        self._sql = database.statements("operate/views/counting.sql")
        self.with_job = self._sql["with_job"]

    def of(self, transaction: Transaction, which: JobFilter) -> list[Spot]:
        """All spots in which jobs may match, narrowed to the time at which they have finished."""
        wanted = frozenset(JobState) if which.states is None else which.states
        if which.has_window:
            wanted &= FINAL
        return [
            self._spot(which, state, queue)
            for state in sorted(wanted)
            for queue in self._queues(transaction, which, state)
        ]

    def finished_in_window(self, transaction: Transaction, which: JobFilter, most: int) -> list[JobId] | None:
        """The jobs that have finished in the time asked for; None: there are more than `most`."""
        found: list[JobId] = []
        for spot in self.of(transaction, which):
            sql = f"SELECT place.job_id {spot.source} WHERE {spot.where} LIMIT :limit"
            found += [row[0] for row in transaction.run(sql, spot.params | {"limit": most + 1 - len(found)})]
            if len(found) > most:
                return None
        return found

    def marked(self, transaction: Transaction, mark: str, before: JobId | None, limit: int) -> list[JobId]:
        """Jobs with this mark, newest first, behind `before`."""
        params = {"mark": mark, "before": before or _AFTER_ALL, "limit": limit}
        return [row[0] for row in transaction.run(self._sql["marked"], params)]

    def looked_at(self, spot: Spot, columns: str, *, with_job: bool) -> str:
        """A SELECT of at most `:cap` + 1 jobs of a spot, and of all that run."""
        joined = self.with_job if with_job else ""
        return f"SELECT {columns} {spot.source} {joined} WHERE {spot.where} {self._sql[f'some_of_{spot.place}']}"

    def _queues(self, transaction: Transaction, which: JobFilter, state: JobState) -> Sequence[str | None]:
        if which.queue is not None or state is JobState.RUNNING:
            return [which.queue]
        rows = transaction.run(self._sql[f"queues_of_{_place(state)}"], {"state": state.value})
        return [row[0] for row in rows]

    def _spot(self, which: JobFilter, state: JobState, queue: str | None) -> Spot:
        place = _place(state)
        params: dict[str, Any] = {}
        names = []
        if queue is not None:
            names.append("of_queue")
            params["spot_queue"] = queue
        if place in {"parked", "finished"}:
            names.append("of_state")
            params["spot_state"] = state.value
        for name in ("finished_after", "finished_before"):
            if (moment := getattr(which, name)) is not None:
                names.append(name)
                params[name] = to_micros(moment)
        where = " AND ".join(self._sql[name] for name in names) or "true"
        return Spot(state, place, self._sql[f"spot_in_{place}"], where, params)


def _place(state: JobState) -> str:
    if state in FINAL:
        return "finished"
    return "parked" if state in PARKED else _PLACES[state]

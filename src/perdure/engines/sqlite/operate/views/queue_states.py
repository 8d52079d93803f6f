"""Counts jobs, and finds them by the time they finished, in one state of one queue at a time.

Each queue state is one range of an index, and no more of it is read than was asked for. Jobs with a mark have an index
of their own.
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

AFTER_ALL: Final = "g"  # sorts behind every id
DEAD_ONLY: Final = frozenset({JobState.DEAD})
_PLACES: Final = {JobState.READY: "ready", JobState.RUNNING: "lease"}


class QueueState(Struct, frozen=True):
    """One state of one queue, of running jobs all queues: their table, pieces of a SELECT, and the values to bind."""

    state: JobState
    place: str
    source: str
    where: str
    params: dict[str, Any]
    some: str


class QueueStates:
    """Finds the queue states of one database, and jobs in them."""

    def __init__(self, database: Database) -> None:
        self._sql = database.statements("operate/views/counting.sql")
        self.with_job = self._sql["with_job"]

    def of(self, transaction: Transaction, which: JobFilter) -> list[QueueState]:
        """All queue states in which jobs may match, narrowed to the time at which they have finished."""
        wanted = frozenset(JobState) if which.states is None else which.states
        if which.has_window:
            wanted &= FINAL
        return [
            self._queue_state(which, state, queue)
            for state in sorted(wanted)
            for queue in self._queues(transaction, which, state)
        ]

    def dead_of_kind(self, which: JobFilter) -> list[QueueState]:
        """The dead letters of a kind in all queues: those of its groups of failures, and those without a failure."""
        params: dict[str, Any] = {"kind": which.kind}
        also = ""
        if which.queue is not None:
            params["spot_queue"] = which.queue
            also = f" AND {self._sql['of_queue']}"
        return [
            QueueState(
                JobState.DEAD,
                "finished",
                self._sql[f"spot_in_dead_{name}"],
                self._sql[f"dead_{name}"] + also,
                params,
                self._sql["some_of_dead"],
            )
            for name in ("of_groups", "unprinted")
        ]

    def finished_in_window(self, transaction: Transaction, which: JobFilter, most: int) -> list[JobId] | None:
        """The jobs that have finished in the time asked for; None: there are more than `most`."""
        found: list[JobId] = []
        for queue_state in self.of(transaction, which):
            sql = f"SELECT place.job_id {queue_state.source} WHERE {queue_state.where} LIMIT :limit"
            found += [row[0] for row in transaction.run(sql, queue_state.params | {"limit": most + 1 - len(found)})]
            if len(found) > most:
                return None
        return found

    def picked(self, transaction: Transaction, which: JobFilter, before: JobId | None, limit: int) -> list[JobId]:
        """Jobs with the requested mark, or else with an attempt of the fingerprint, newest first."""
        params: dict[str, Any] = {"before": before or AFTER_ALL, "limit": limit}
        if which.mark is not None:
            name, params["mark"] = "marked", which.mark
        else:
            name, params["fingerprint"] = (
                "died_alike" if which.states == DEAD_ONLY else "failed_alike",
                which.fingerprint,
            )
        return [row[0] for row in transaction.run(self._sql[name], params)]

    def looked_at(self, queue_state: QueueState, columns: str, *, with_job: bool) -> str:
        """A SELECT of at most `:cap` + 1 jobs of a queue state, and of all that run."""
        joined = self.with_job if with_job else ""
        return f"SELECT {columns} {queue_state.source} {joined} WHERE {queue_state.where} {queue_state.some}"

    def _queues(self, transaction: Transaction, which: JobFilter, state: JobState) -> Sequence[str | None]:
        if which.queue is not None or state is JobState.RUNNING:
            return [which.queue]
        rows = transaction.run(self._sql[f"queues_of_{_place(state)}"], {"state": state.value})
        return [row[0] for row in rows]

    def _queue_state(self, which: JobFilter, state: JobState, queue: str | None) -> QueueState:
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
        return QueueState(state, place, self._sql[f"spot_in_{place}"], where, params, self._sql[f"some_of_{place}"])


def _place(state: JobState) -> str:
    if state in FINAL:
        return "finished"
    return "parked" if state in PARKED else _PLACES[state]

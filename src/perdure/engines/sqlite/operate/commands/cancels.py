"""Cancels jobs without asking a worker: waiting jobs, and running ones that are taken from their worker."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from msgspec import Struct

from perdure.domain.jobs.ids import JobId
from perdure.domain.jobs.job import UniqueKey
from perdure.domain.jobs.states import JobState
from perdure.engines.sqlite.database.database import Database
from perdure.engines.sqlite.database.rows import to_document, unique_key
from perdure.engines.sqlite.database.transaction import Transaction
from perdure.engines.sqlite.intake.keys import Keys

ACTIVE_PLACES: Final = ("ready", "parked", "lease")


class Chosen(Struct, frozen=True):
    """A job that a command changes."""

    job_id: JobId
    unique: UniqueKey | None
    parent: JobId | None
    is_parent: bool


def chosen_of(row: list[Any]) -> Chosen:
    """A chosen job from its columns: id, the three of its unique key, parent_id and is_parent."""
    job_id, key, states, dead_for, parent, is_parent = row
    return Chosen(job_id, unique_key(key, states, dead_for), parent, is_parent == 1)


class Cancels:
    """Takes jobs out of their places."""

    def __init__(self, database: Database) -> None:
        self._sql = database.statements("operate/commands/cancels.sql")
        self._keys = Keys(database)

    def cancel(
        self, transaction: Transaction, jobs: Sequence[Chosen], places: Sequence[str], *, why: str | None, by: str
    ) -> None:
        """Cancel jobs that stand in one of these places; a worker that runs one loses its claim, and is notified."""
        ids = to_document([job.job_id for job in jobs])
        for place in places:
            end = {"ids": ids, "now": transaction.now, "why": why, "by": by}
            transaction.change(self._sql[f"cancel_{place}"], end)
        self._clear(transaction, ids, places, why)
        moves = [(job.job_id, job.unique, JobState.CANCELLED) for job in jobs if job.unique is not None]
        if moves:
            self._keys.move(transaction, moves)

    def take_out(self, transaction: Transaction, ids: Sequence[JobId], why: str) -> None:
        """Remove jobs that are about to be deleted from their place, except finished ones."""
        self._clear(transaction, to_document(ids), ACTIVE_PLACES, why)

    def _clear(self, transaction: Transaction, ids: str, places: Sequence[str], why: str | None) -> None:
        if "lease" in places:
            transaction.change(self._sql["revoke"], {"ids": ids, "now": transaction.now, "why": why})
        if "parked" in places:
            transaction.change(self._sql["leave_waiters"], {"ids": ids})
        for place in places:
            transaction.change(self._sql[f"leave_{place}"], {"ids": ids})

"""Who holds a unique key as jobs change state (G7).

The primary key of `unique_hold` decides alone. When jobs move, those whose new state claims the key take it or
renew it, and those whose new state does not, release it. A job that is denied its key must not enter that state.
"""

from __future__ import annotations

from collections.abc import Iterable

from perdure.domain.jobs.ids import JobId
from perdure.domain.jobs.job import UniqueKey
from perdure.domain.jobs.states import JobState
from perdure.engines.shared.database.instants import after
from perdure.engines.sqlite.database.database import Database
from perdure.engines.sqlite.database.rows import from_document, to_document
from perdure.engines.sqlite.database.transaction import Transaction

Move = tuple[JobId, UniqueKey, JobState]


class Keys:
    """The holds on unique keys."""

    def __init__(self, database: Database) -> None:
        self._sql = database.statements("intake/keys.sql")

    def move(self, transaction: Transaction, moves: Iterable[Move]) -> set[JobId]:
        """Take, keep or release keys for jobs that move to a new state; return the jobs that were denied theirs.

        A job that dies keeps its key for `dead_for`; if another holds it by then, the job dies without it.
        """
        dropped: list[tuple[str, JobId]] = []
        wanted: list[tuple[str, JobId, int | None]] = []
        for job_id, unique, to in moves:
            if to in unique.states:
                wanted.append((unique.key, job_id, None))
            elif to is JobState.DEAD and unique.dead_for:
                wanted.append((unique.key, job_id, after(transaction.now, unique.dead_for)))
            else:
                dropped.append((unique.key, job_id))
        if dropped:
            transaction.change(self._sql["drop_keys"], {"rows": to_document(dropped)})
        if not wanted:
            return set()
        rows = to_document(wanted)
        transaction.change(self._sql["take_keys"], {"rows": rows, "now": transaction.now})
        ((denied,),) = transaction.run(self._sql["denied"], {"rows": rows})
        return set(from_document(denied))

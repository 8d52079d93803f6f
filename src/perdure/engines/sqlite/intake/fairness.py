"""The place in line of a job with a fair key.

Each key has its jobs one step apart, from the front of the line on: a key with many jobs reaches far back, and one
with few jobs gets in between. Only waiting jobs of a key count, not its earlier ones.

Turns follow the clock, so a step is a span of time: a key stands in line as if it had handed in one job for each step.
Jobs without a key keep their order of arrival, independent of the others.

A job keeps its key, and takes its place by the same rule when it is retried, becomes due or begins a new life. One that
comes back for any other reason keeps the turn that it had.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from msgspec import Struct

from perdure.domain.jobs.ids import JobId
from perdure.engines.sqlite.database.database import Database
from perdure.engines.sqlite.database.plan import Ask, Do, Part, Statements, follow
from perdure.engines.sqlite.database.rows import from_document, to_document
from perdure.engines.sqlite.database.transaction import Transaction

STEP_MICROS: Final = 10_000


class Entrant(Struct, frozen=True):
    """A job with a fair key that is about to enter its line."""

    job_id: JobId
    queue: str
    priority: int
    key: str


def fair_turns(sql: Statements, entrants: Iterable[Entrant], newest: int) -> Part[dict[JobId, int]]:
    """The turns of these jobs; `newest` is the end of the line now. `sql` is that of `intake.sql`."""
    turns: dict[JobId, int] = {}
    last: dict[tuple[str, int, str], int] = {}
    for entrant in entrants:
        if not turns:
            yield Do(sql["lock"], {})
        share = (entrant.queue, entrant.priority, entrant.key)
        if share not in last:
            last[share] = yield from _after(sql, *share, newest)
        last[share] += STEP_MICROS
        turns[entrant.job_id] = last[share]
    return turns


def _after(sql: Statements, queue: str, priority: int, key: str, newest: int) -> Part[int]:
    line = {"queue": queue, "priority": priority}
    front: list[tuple[int]] = yield Ask(sql["front_turn"], line)
    if not front:
        return newest
    own: list[tuple[int]] = yield Ask(sql["last_fair_turn"], line | {"key": key})
    return max(front[0][0], own[0][0]) if own else front[0][0]


class FairTurns:
    """Gives their turns to jobs that come back and bear a fair key."""

    def __init__(self, database: Database) -> None:
        self._sql = database.statements("intake/intake.sql")

    def give(self, transaction: Transaction, found: str, which: dict[str, Any], newest: int) -> None:
        """Note the turns of the jobs that the statement `found` lists: id, queue, priority and key of each."""
        ((document,),) = transaction.run(found, which)
        entrants = [Entrant(*row) for row in from_document(document)]
        if not entrants:
            return
        turns = follow(transaction, fair_turns(self._sql, entrants, newest))
        transaction.change(self._sql["note_fair_turns"], {"turns": to_document(turns)})

"""Upkeep. The reader checks first, so that an idle store takes no write lock."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from perdure.domain.jobs.ids import JobId, WorkerId
from perdure.domain.jobs.job import Orphan, UniqueKey
from perdure.domain.jobs.states import FINAL, JobState, Reason
from perdure.engines.shared.batch_sizes import ENTRIES_PER_JOB, INDEX_PIECES_PER_TICK
from perdure.engines.shared.database.instants import after, from_micros, maybe_moment, span
from perdure.engines.shared.prune_progress import PruneProgress
from perdure.engines.sqlite.database.database import Database
from perdure.engines.sqlite.database.rows import claim_of, from_document, to_document, unique_key
from perdure.engines.sqlite.database.transaction import Transaction
from perdure.engines.sqlite.intake.fairness import FairTurns
from perdure.engines.sqlite.intake.keys import Keys
from perdure.engines.sqlite.operate.views.kinds import KindPart
from perdure.errors import StoreError
from perdure.policy.clock_slack import CLOCK_SLACK
from perdure.policy.consequences import HELD_KEY_WAIT
from perdure.policy.retention import BULKS_KEPT, DEAD_WORKERS_KEPT, NOMINAL_TIMES_KEPT
from perdure.storage.operate.failure_groups import FAILURES_KEPT
from perdure.storage.records import Keep, Overdue, Promoted

_FIRES_AT_ONCE: Final = 10_000
_BEFORE_ALL: Final = -(2**62)
_BELONGINGS: Final = (
    "attempts",
    "steps",
    "progress",
    "lines",
    "waiters",
    "joined",
    "children",
    "families",
    "plans",
    "keys",
    "finished",
    "jobs",
)


class UpkeepPart:
    """Upkeep of the store."""

    def __init__(self, database: Database, kinds: KindPart) -> None:
        self._database = database
        self._kinds = kinds
        self._prune_progress = PruneProgress()
        self._sql = database.statements("fleet/upkeep.sql")
        self._audit = database.statements("operate/commands/audit.sql")
        self._keys = Keys(database)
        self._fair_turns = FairTurns(database)

    async def promote(
        self, limit: int, *, only: JobId | None = None, aside: Collection[JobId] = frozenset()
    ) -> Promoted:
        """Make due parked jobs ready, oldest due first."""
        left_out = to_document(sorted(aside))
        next_due = await self._database.read(lambda transaction: self._next_due(transaction, left_out))
        now = self._database.now()
        if next_due is None or next_due > now:
            return _promoted({}, next_due, now)
        return await self._database.write(lambda transaction: self._promote(transaction, limit, only, left_out))

    async def overdue(
        self, limit: int, by: timedelta = timedelta(0), aside: Collection[JobId] = frozenset()
    ) -> list[Overdue]:
        """Parked jobs that are due, oldest due first."""
        params = {"limit": limit, "before": self._database.now() - span(by), "aside": to_document(sorted(aside))}
        ((document,),) = await self._database.read(lambda transaction: transaction.run(self._sql["overdue"], params))
        return [Overdue(job_id, queue, from_micros(due_at)) for job_id, queue, due_at in from_document(document)]

    async def hasten(self, keys: Collection[str]) -> int:
        """Make the first job that waits for each of these unique keys due now; returns how many."""
        ((is_awaited,),) = await self._database.read(lambda transaction: transaction.run(self._sql["is_key_awaited"]))
        if not is_awaited:
            return 0
        document = to_document(sorted(keys))
        return await self._database.write(
            lambda transaction: transaction.change(self._sql["hasten"], {"keys": document, "now": transaction.now})
        )

    async def orphans(self, limit: int, after: JobId | None = None) -> list[Orphan]:
        """Claims of workers that are dead or no longer known, by job id."""
        params = {"after": after or "", "limit": limit}

        def look(transaction: Transaction) -> list[Orphan]:
            ((document,),) = transaction.run(self._sql["orphans"], params)
            if rows := from_document(document):
                self._kinds.read(transaction)  # they may be of kinds that this process does not know
            return [_orphan(row, transaction.now) for row in rows]

        return await self._database.read(look)

    async def last_return(self, queue: str) -> datetime | None:
        """When the last of the queue's jobs comes back that a dead worker held."""
        params = {"queue": queue}
        ((due,),) = await self._database.read(lambda transaction: transaction.run(self._sql["last_return"], params))
        return maybe_moment(due)

    async def prune(self, keep: Keep, limit: int) -> int:
        """Delete finished jobs kept long enough, and forget workers dead for a day and nominal times of long ago.

        Times from a clock that ran ahead are set to the present.
        """
        return await self._database.write(lambda transaction: self._prune(transaction, keep, limit))

    def forget(self, transaction: Transaction, ids: list[JobId]) -> None:
        """Delete finished jobs with all that belongs to them."""
        params = {"ids": to_document(ids)}
        for belonging in _BELONGINGS:
            transaction.change(self._sql[f"forget_{belonging}"], params)

    def forget_some_children(self, parents: Sequence[JobId], limit: int, transaction: Transaction) -> int:
        """Delete at most `limit` records of these jobs' children; returns their number."""
        rows = transaction.run(self._sql["some_children"], {"ids": to_document(parents), "limit": limit})
        params = {"children": to_document([child_id for (child_id,) in rows])}
        transaction.change(self._sql["forget_some_joined"], params)
        return transaction.change(self._sql["forget_some_children"], params)

    def make_ready(self, transaction: Transaction, ids: list[JobId], reason: Reason) -> None:
        """Move parked jobs to their lines."""
        document = to_document(ids)
        self._note_places(transaction, document, transaction.turns(len(ids)))
        moved = {"ids": document, "now": transaction.now, "reason": reason}
        transaction.change(self._sql["ready_from_parked"], moved)
        transaction.change(self._sql["leave_waiters"], {"ids": document})
        transaction.change(self._sql["leave_parked"], {"ids": document})

    def wake(self, transaction: Transaction, rows: list[list[Any]], reason: Reason) -> list[list[Any]]:
        """Make parked jobs ready, each given by id, queue and the three columns of its unique key; which ones are now.

        One that is denied its key is held back for a while. One whose key cannot be read is due from now on: the
        promoter reports it.
        """
        bad = [row[0] for row in rows if not _is_readable(row)]
        if bad:
            transaction.change(self._sql["make_due"], {"ids": to_document(bad), "now": transaction.now})
            rows = [row for row in rows if row[0] not in bad]
        return self._make_all_ready(transaction, rows, reason)

    def _make_all_ready(self, transaction: Transaction, rows: list[list[Any]], reason: Reason) -> list[list[Any]]:
        moves = [
            (job_id, unique, JobState.READY)
            for job_id, _, *columns in rows
            if (unique := _key_of(*columns)) is not None
        ]
        denied = self._keys.move(transaction, moves) if moves else set()
        if denied:
            now = transaction.now
            held_back = {"ids": to_document(sorted(denied)), "due_at": after(now, HELD_KEY_WAIT), "now": now}
            transaction.change(self._sql["hold_back"], held_back)
        free = [row for row in rows if row[0] not in denied]
        if free:
            self.make_ready(transaction, [row[0] for row in free], reason)
        return free

    def give_turns(self, transaction: Transaction, ids: list[JobId]) -> None:
        """Set the places in line of jobs that start a new life: at the end, in this order, or by their fair keys."""
        document, turn = to_document(ids), transaction.turns(len(ids))
        noted = transaction.change(self._sql["note_turns"], {"ids": document, "turn": turn})
        if noted < len(ids):
            self._fair_turns.give(transaction, self._sql["fair_ones"], {"ids": document}, turn)

    def _note_places(self, transaction: Transaction, document: str, newest: int) -> None:
        """Set the places in line of parked jobs: their old ones, or else by their time or by their fair keys."""
        transaction.change(self._sql["note_places"], {"ids": document, "now": transaction.now})
        self._fair_turns.give(transaction, self._sql["placeless_fair_ones"], {"ids": document}, newest)

    def _next_due(self, transaction: Transaction, aside: str) -> int | None:
        ((due,),) = transaction.run(self._sql["next_due"], {"aside": aside})
        earliest: int | None = due
        return earliest

    def _promote(self, transaction: Transaction, limit: int, only: JobId | None, aside: str) -> Promoted:
        which = {"now": transaction.now, "limit": limit, "only": only, "aside": aside}
        ((document,),) = transaction.run(self._sql["due"], which)
        free = self._make_all_ready(transaction, from_document(document), Reason.DUE)
        return _promoted(dict(Counter(row[1] for row in free)), self._next_due(transaction, aside), transaction.now)

    def _prune(self, transaction: Transaction, keep: Keep, limit: int) -> int:
        self._redate(transaction, limit)
        own = self._kinds.own_times(transaction)
        self._prune_progress.begin(frozenset(own))
        pruned = 0
        for kind, times in own.items():
            for state, kept in times.by_state:
                params = {"kind": kind, "state": state, "before": transaction.now - span(kept)}
                pruned += self._forget_old(transaction, "old_of_kind", params, limit - pruned)
        for state, kept in keep.by_state:
            before = transaction.now - span(kept)
            for (queue,) in transaction.run(self._sql["finished_queues"], {"state": state}):
                params = {"state": state, "queue": queue, "before": before}
                if own:
                    pruned += self._forget_beside_kinds(transaction, own, params, limit - pruned)
                else:
                    pruned += self._forget_old(transaction, "old", params, limit - pruned)
        for statement in ("forget_revoked", "forget_workers"):
            transaction.change(self._sql[statement], {"before": transaction.now - span(DEAD_WORKERS_KEPT)})
        old = {"before": transaction.now - span(NOMINAL_TIMES_KEPT), "limit": _FIRES_AT_ONCE}
        transaction.change(self._sql["forget_fires"], old)
        for statement in ("forget_hours", "forget_groups"):
            transaction.change(self._sql[statement], {"before": transaction.now - span(FAILURES_KEPT)})
        transaction.change(self._sql["forget_bulks"], {"before": transaction.now - span(BULKS_KEPT)})
        if keep.audit_trail is not None:
            old = {"before": transaction.now - span(keep.audit_trail), "limit": ENTRIES_PER_JOB * limit}
            transaction.change(self._audit["allow_pruning"], {"before": old["before"]})
            transaction.change(self._audit["forget"], old)
        return pruned

    def _redate(self, transaction: Transaction, limit: int) -> None:
        """Redate jobs, and keys held by dead ones, that have a time from a clock that was ahead."""
        ahead = transaction.now + span(CLOCK_SLACK)
        for state in sorted(FINAL):
            for (queue,) in transaction.run(self._sql["finished_queues"], {"state": state}):
                which = {"state": state, "queue": queue, "ahead": ahead, "limit": limit}
                ((document,),) = transaction.run(self._sql["ahead"], which)
                if ids := from_document(document):
                    params = {"ids": to_document(ids), "now": transaction.now}
                    transaction.change(self._sql["redate_keys"], params)
                    transaction.change(self._sql["redate_finished"], params)

    def _forget_old(self, transaction: Transaction, statement: str, params: dict[str, Any], limit: int) -> int:
        ((document,),) = transaction.run(self._sql[statement], params | {"limit": limit})
        if ids := from_document(document):
            self.forget(transaction, ids)
        return len(ids)

    def _forget_beside_kinds(
        self, transaction: Transaction, own: Collection[str], params: dict[str, Any], limit: int
    ) -> int:
        """The same if some kinds have their own retention: their jobs are marked as such, and passed over."""
        state, queue = params["state"], params["queue"]
        ids: list[JobId] = []
        theirs: list[tuple[JobId, str]] = []
        for _ in range(INDEX_PIECES_PER_TICK):
            at, after_id = self._prune_progress.place(state, queue) or (_BEFORE_ALL, "")
            wanted = limit - len(ids)
            place = {"after": at, "after_id": after_id, "limit": wanted}
            rows = transaction.run(self._sql["old_with_kind"], params | place)
            for job_id, finished_at, kind, kept_as in rows:
                self._prune_progress.passed(state, queue, (finished_at, job_id))
                if kind not in own:
                    ids.append(job_id)
                elif kept_as is None:
                    theirs.append((job_id, kind))
            if len(rows) < wanted or len(ids) >= limit:
                break
        if theirs:
            transaction.change(self._sql["note_kinds"], {"rows": to_document(theirs)})
        if ids:
            self.forget(transaction, ids)
        return len(ids)


def _key_of(key: str | None, states: str | None, dead_for: int | None) -> UniqueKey | None:
    """The unique key of a job that becomes ready, from its three columns."""
    if (key is None) != (states is None):
        raise StoreError(f"the record of the job is damaged: unique_key is {key!r}, unique_states is {states!r}")
    return unique_key(key, states or "", dead_for)


def _is_readable(row: list[Any]) -> bool:
    try:
        _key_of(*row[2:])
    except (StoreError, ValueError, OverflowError):
        return False
    return True


def _promoted(by_queue: dict[str, int], next_due: int | None, now: int) -> Promoted:
    if next_due is None:
        return Promoted(by_queue)
    return Promoted(by_queue, from_micros(next_due), timedelta(microseconds=next_due - now))


def _orphan(row: list[Any], now: int) -> Orphan:
    gates, token, queue, claimed_at, worker_id, worker, beat_at = row[18:]
    silent_for = timedelta(microseconds=max(now - (claimed_at if beat_at is None else beat_at), 0))
    claim = claim_of([*row[:18], 0, None, None, gates], token, queue, from_micros(claimed_at))
    return Orphan(claim, WorkerId(worker_id), worker or f"worker {worker_id}", silent_for)

"""What operators change, with who did it in the audit trail of the same transaction."""

from __future__ import annotations

from msgspec import Struct

from perdure.domain.ids import JobId
from perdure.domain.job import UniqueKey
from perdure.domain.states import ACTIVE, FINAL, PARKED, JobState, Reason
from perdure.engines.sqlite.database import Database
from perdure.engines.sqlite.keys import Keys
from perdure.engines.sqlite.rows import clean, from_document, to_document, unique_key
from perdure.engines.sqlite.selection import Selection, Selector
from perdure.engines.sqlite.transaction import Transaction
from perdure.engines.sqlite.upkeep import UpkeepPart
from perdure.storage.records import JobFilter


class Chosen(Struct, frozen=True):
    """A job that a command applies to."""

    job_id: JobId
    unique: UniqueKey | None


class CommandPart:
    """Commands to the store."""

    def __init__(self, database: Database, upkeep: UpkeepPart) -> None:
        self._database = database
        self._upkeep = upkeep
        self._sql = database.statements("commands.sql")
        self._selector = Selector(database)
        self._keys = Keys(database)

    async def requeue(self, which: JobFilter, actor: str, limit: int) -> list[JobId]:
        """Give finished jobs a new life, unless another holds their unique key."""
        selections = self._selector.select(which, FINAL, {"key_free_at": self._database.now()})

        def act(transaction: Transaction) -> list[JobId]:
            ids = self._allowed(transaction, self._choose(transaction, selections, limit))
            if ids:
                document = to_document(ids)
                turn = self._upkeep.give_turns(transaction, ids)
                reborn = {"ids": document, "turn": turn, "now": transaction.now}
                transaction.change(self._sql["ready_from_finished"], reborn)
                transaction.change(self._sql["leave_finished"], {"ids": document})
                self._audit(transaction, ids, actor, "requeue")
            return ids

        return await self._database.write(act)

    async def cancel(self, which: JobFilter, actor: str, why: str, limit: int) -> list[JobId]:
        """Call off what waits, and ask what runs to stop, once."""
        waiting = self._selector.select(which, ACTIVE - {JobState.RUNNING})
        running = self._selector.select(which, frozenset({JobState.RUNNING}), {"not_asked": None})
        why = clean(why)

        def act(transaction: Transaction) -> list[JobId]:
            ids: list[JobId] = []
            for selection in waiting:
                chosen = self._choose(transaction, [selection], limit - len(ids))
                ids += self._cancel_waiting(transaction, selection.place, chosen, why)
            asked = [job.job_id for job in self._choose(transaction, running, limit - len(ids))]
            if asked:
                request = {"ids": to_document(asked), "now": transaction.now, "why": why or None}
                transaction.change(self._sql["ask_to_stop"], request)
            self._audit(transaction, ids + asked, actor, "cancel", why=why)
            return ids + asked

        return await self._database.write(act)

    async def run_now(self, which: JobFilter, actor: str, limit: int) -> list[JobId]:
        """Make parked jobs ready, unless another holds their unique key."""
        selections = self._selector.select(which, PARKED, {"key_free_at": self._database.now()})

        def act(transaction: Transaction) -> list[JobId]:
            ids = self._allowed(transaction, self._choose(transaction, selections, limit))
            if ids:
                self._upkeep.make_ready(transaction, ids, Reason.RUN_NOW)
                self._audit(transaction, ids, actor, "run_now")
            return ids

        return await self._database.write(act)

    async def purge(self, which: JobFilter, actor: str, limit: int) -> list[JobId]:
        """Delete finished jobs with all that belongs to them, but for the audit trail."""
        selections = self._selector.select(which, FINAL)

        def act(transaction: Transaction) -> list[JobId]:
            ids = [job.job_id for job in self._choose(transaction, selections, limit)]
            if ids:
                self._upkeep.forget(transaction, ids)
                self._audit(transaction, ids, actor, "purge")
            return ids

        return await self._database.write(act)

    def _choose(self, transaction: Transaction, selections: list[Selection], limit: int) -> list[Chosen]:
        """The oldest jobs of these places, at most `limit` in all."""
        chosen: list[Chosen] = []
        for selection in selections:
            select = f"{self._sql['choose']} {selection.oldest_first}"
            params = selection.params | {"limit": limit - len(chosen)}
            ((document,),) = transaction.run(f"{self._sql['gather_chosen']} ({select})", params)
            chosen += [Chosen(job_id, unique_key(*columns)) for job_id, _, *columns in from_document(document)]
        return chosen

    def _allowed(self, transaction: Transaction, jobs: list[Chosen]) -> list[JobId]:
        """Of jobs about to be ready, those that are not denied their unique key."""
        moves = [(job.job_id, job.unique, JobState.READY) for job in jobs if job.unique is not None]
        denied = self._keys.settle(transaction, moves) if moves else set()
        return [job.job_id for job in jobs if job.job_id not in denied]

    def _cancel_waiting(self, transaction: Transaction, place: str, jobs: list[Chosen], why: str) -> list[JobId]:
        ids = [job.job_id for job in jobs]
        if ids:
            document = to_document(ids)
            params = {"ids": document, "now": transaction.now, "why": why or None}
            transaction.change(self._sql[f"cancel_{place}"], params)
            transaction.change(self._sql[f"leave_{place}"], {"ids": document})
            moves = [(job.job_id, job.unique, JobState.CANCELLED) for job in jobs if job.unique is not None]
            if moves:
                self._keys.settle(transaction, moves)
        return ids

    def _audit(self, transaction: Transaction, ids: list[JobId], actor: str, action: str, **details: str) -> None:
        if ids:
            entry = {"actor": clean(actor), "action": action, "details": to_document(details)}
            params = {"ids": to_document(ids), "now": transaction.now}
            transaction.change(self._sql["write_audit"], entry | params)

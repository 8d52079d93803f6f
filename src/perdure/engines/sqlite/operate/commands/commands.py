"""What operators change, with who did it in the audit trail of the same transaction."""

from __future__ import annotations

from datetime import datetime
from functools import partial
from typing import Final

from perdure.domain.jobs.ids import JobId
from perdure.domain.jobs.states import ACTIVE, FINAL, PARKED, JobState, Reason
from perdure.engines.shared.database.instants import to_micros
from perdure.engines.sqlite.database.database import Database
from perdure.engines.sqlite.database.rows import clean, from_document, to_document
from perdure.engines.sqlite.database.transaction import Transaction
from perdure.engines.sqlite.fleet.upkeep import UpkeepPart
from perdure.engines.sqlite.flows.settling import Settling
from perdure.engines.sqlite.intake.keys import Keys
from perdure.engines.sqlite.operate.audit import Audit
from perdure.engines.sqlite.operate.commands.cancels import ACTIVE_PLACES, Cancels, Chosen, chosen_of
from perdure.engines.sqlite.operate.views.filters import EVERY_STATE, Selection, Selector
from perdure.errors import ArgumentError
from perdure.policy.consequences import JOB_DELETED
from perdure.storage.records import JobFilter

CHILDREN_AT_ONCE: Final = 1_000
"""How many children are cancelled in one transaction when their parent is deleted."""


class CommandPart:
    """Commands to the store."""

    def __init__(self, database: Database, upkeep: UpkeepPart, settling: Settling) -> None:
        self._database = database
        self._upkeep = upkeep
        self._settling = settling
        self._cancels = Cancels(database)
        self._sql = database.statements("operate/commands/commands.sql")
        self._selector = Selector(database)
        self._keys = Keys(database)
        self._audit = Audit(database)

    async def requeue(self, which: JobFilter, actor: str, limit: int) -> list[JobId]:
        """Give finished jobs a new life, unless another holds their unique key."""
        selections = self._selector.select(which, FINAL, {"key_free_at": self._database.now()})

        def act(transaction: Transaction) -> list[JobId]:
            chosen = self._choose(transaction, selections, limit)
            ids = self._allowed(transaction, chosen)
            if ids:
                self._audit.about_command(transaction, ids, actor, "requeue")
                document, again = to_document(ids), set(ids)
                kin = [job for job in chosen if job.parent is not None or job.unique is not None]
                if awaited := [job.job_id for job in kin if job.job_id in again]:
                    self._settling.revive(transaction, awaited)
                self._upkeep.give_turns(transaction, ids)
                transaction.change(self._sql["ready_from_finished"], {"ids": document, "now": transaction.now})
                transaction.change(self._sql["leave_finished"], {"ids": document})
                transaction.change(self._sql["unmark"], {"ids": document})
            return ids

        return await self._database.write(act)

    async def cancel(self, which: JobFilter, actor: str, why: str, limit: int) -> list[JobId]:
        """Call off what waits, and ask what runs to stop, once."""
        return await self._database.write(
            lambda transaction: self.call_off(transaction, which, actor, why, limit),
        )

    def call_off(self, transaction: Transaction, which: JobFilter, actor: str, why: str, limit: int) -> list[JobId]:
        """As `cancel`, in a transaction that is open."""
        waiting = self._selector.select(which, ACTIVE - {JobState.RUNNING})
        running = self._selector.select(which, frozenset({JobState.RUNNING}), {"not_asked": None})
        why = clean(why)
        called_off: list[Chosen] = []
        for selection in waiting:
            chosen = self._choose(transaction, [selection], limit - len(called_off))
            if chosen:
                self._audit.about_command(transaction, [job.job_id for job in chosen], actor, "cancel", why=why)
                self._cancels.cancel(transaction, chosen, [selection.place], why=why or None, by=clean(actor))
                called_off += chosen
        ids = [job.job_id for job in called_off]
        asked = [job.job_id for job in self._choose(transaction, running, limit - len(ids))]
        if asked:
            self._audit.about_command(transaction, asked, actor, "cancel", why=why)
            request = {"ids": to_document(asked), "now": transaction.now, "why": why or None, "by": clean(actor)}
            transaction.change(self._sql["ask_to_stop"], request)
        self._settle_kin(transaction, called_off, why or None)
        return ids + asked

    async def run_now(self, which: JobFilter, actor: str, limit: int) -> list[JobId]:
        """Make parked jobs ready, unless another holds their unique key; what they wait for by the clock is over."""
        selections = self._selector.select(which, PARKED, {"key_free_at": self._database.now()})

        def act(transaction: Transaction) -> list[JobId]:
            ids = self._allowed(transaction, self._choose(transaction, selections, limit))
            if ids:
                self._audit.about_command(transaction, ids, actor, "run_now")
                transaction.change(self._sql["waive_delay"], {"ids": to_document(ids)})
                self._upkeep.make_ready(transaction, ids, Reason.RUN_NOW)
                transaction.change(self._sql["hurry_steps"], {"ids": to_document(ids), "due_at": transaction.now})
            return ids

        return await self._database.write(act)

    async def reschedule(self, which: JobFilter, due_at: datetime, actor: str, limit: int) -> list[JobId]:
        """Give parked jobs that would come back by themselves another time to do so."""
        if due_at.tzinfo is None:
            raise ArgumentError("due_at", f"must carry a time zone, got {due_at.isoformat()}")
        selections = self._selector.select(which, PARKED, {"comes_back": None})

        def act(transaction: Transaction) -> list[JobId]:
            ids = [job.job_id for job in self._choose(transaction, selections, limit)]
            if ids:
                self._audit.about_reschedule(transaction, ids, actor, due_at.isoformat())
                later = {"ids": to_document(ids), "due_at": to_micros(due_at)}
                transaction.change(self._sql["note_run_at"], later)
                transaction.change(self._sql["reschedule"], later)
                transaction.change(self._sql["hurry_steps"], later)
            return ids

        return await self._database.write(act)

    async def mark(self, which: JobFilter, mark: str | None, actor: str, limit: int) -> list[JobId]:
        """Put a mark on jobs, whatever their state, or take theirs away."""
        selections = self._selector.select(which)

        def act(transaction: Transaction) -> list[JobId]:
            ids = [job.job_id for job in self._choose(transaction, selections, limit)]
            if ids:
                transaction.change(self._sql["mark"], {"ids": to_document(ids), "mark": mark})
                self._audit.about_jobs(transaction, ids, actor, "mark", mark=mark)
            return ids

        return await self._database.write(act)

    async def delete(self, which: JobFilter, actor: str, limit: int) -> list[JobId]:
        """Forget jobs, whatever their state; their children that are not final are cancelled.

        Where there are many of these, other writers get in between: the jobs are cancelled first, so that they run no
        more, then the children some at a time, and what is left goes at the end. If that is cut short, the jobs are
        there to be deleted again.
        """
        selections = self._selector.select(which, EVERY_STATE)

        def act(transaction: Transaction) -> tuple[list[JobId], bool]:
            chosen = self._choose(transaction, selections, limit)
            parents = [job.job_id for job in chosen if job.is_parent]
            if parents and self._settling.has_many_active(transaction, parents, CHILDREN_AT_ONCE):
                self._cancels.cancel(transaction, chosen, ACTIVE_PLACES, why=JOB_DELETED, by=actor)
                self._settling.settle_set_aside(transaction, chosen, JOB_DELETED)
                return [job.job_id for job in chosen], False
            return self._forget(transaction, chosen, actor), True

        ids, is_done = await self._database.write(act)
        if is_done:
            return ids
        for thin_out in (self._settling.cancel_some, self._upkeep.forget_some_children):
            some = partial(thin_out, ids, CHILDREN_AT_ONCE)
            while await self._database.write(some) == CHILDREN_AT_ONCE:
                pass
        again = self._selector.select(JobFilter(ids=tuple(ids)), EVERY_STATE)
        return await self._database.write(
            lambda transaction: self._forget(transaction, self._choose(transaction, again, len(ids)), actor)
        )

    def _forget(self, transaction: Transaction, chosen: list[Chosen], actor: str) -> list[JobId]:
        ids = [job.job_id for job in chosen]
        if ids:
            self._audit.about_command(transaction, ids, actor, "delete", with_kind=True)
            self._cancels.take_out(transaction, ids, JOB_DELETED)
            self._settling.settle_deleted(transaction, chosen, JOB_DELETED)
            self._upkeep.forget(transaction, ids)
        return ids

    async def purge(self, which: JobFilter, actor: str, limit: int) -> list[JobId]:
        """Delete finished jobs with all that belongs to them, but for the audit trail."""
        selections = self._selector.select(which, FINAL)

        def act(transaction: Transaction) -> list[JobId]:
            ids = [job.job_id for job in self._choose(transaction, selections, limit)]
            if ids:
                self._audit.about_command(transaction, ids, actor, "purge", with_kind=True)
                self._upkeep.forget(transaction, ids)
            return ids

        return await self._database.write(act)

    def _choose(self, transaction: Transaction, selections: list[Selection], limit: int) -> list[Chosen]:
        """The oldest jobs of these places, at most `limit` in all."""
        chosen: list[Chosen] = []
        for selection in selections:
            select = f"{self._sql['choose']} {selection.oldest_first}"
            params = selection.params | {"limit": limit - len(chosen)}
            ((document,),) = transaction.run(f"{self._sql['gather_chosen']} ({select})", params)
            chosen += [chosen_of(row) for row in from_document(document)]
        return chosen

    def _allowed(self, transaction: Transaction, jobs: list[Chosen]) -> list[JobId]:
        """Of jobs about to be ready, those that are not denied their unique key."""
        moves = [(job.job_id, job.unique, JobState.READY) for job in jobs if job.unique is not None]
        denied = self._keys.settle(transaction, moves) if moves else set()
        return [job.job_id for job in jobs if job.job_id not in denied]

    def _settle_kin(self, transaction: Transaction, cancelled: list[Chosen], why: str | None) -> None:
        kin = [job for job in cancelled if job.parent is not None or job.is_parent]
        if kin:
            self._settling.settle_cancelled(transaction, kin, why)

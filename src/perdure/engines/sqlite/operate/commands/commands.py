"""What operators change, with who did it in the audit trail of the same transaction."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import partial

from perdure.domain.jobs.ids import JobId, WorkerId
from perdure.domain.jobs.states import ACTIVE, FINAL, PARKED, JobState, Reason
from perdure.domain.operate.audit import By, Note
from perdure.engines.shared.batch_sizes import CHILDREN_AT_ONCE
from perdure.engines.shared.database.instants import to_micros
from perdure.engines.sqlite.database.database import Database
from perdure.engines.sqlite.database.rows import clean, from_document, to_document
from perdure.engines.sqlite.database.transaction import Transaction
from perdure.engines.sqlite.fleet.upkeep import UpkeepPart
from perdure.engines.sqlite.flows.settling import Settling
from perdure.engines.sqlite.intake.keys import Keys
from perdure.engines.sqlite.operate.commands.audit import Audit
from perdure.engines.sqlite.operate.commands.cancels import ACTIVE_PLACES, Cancels, Chosen, chosen_of
from perdure.engines.sqlite.operate.views.filters import EVERY_STATE, Selection, Selector
from perdure.errors import ArgumentError
from perdure.policy.consequences import JOB_DELETED
from perdure.storage.operate.bulk import BulkParams
from perdure.storage.records import JobFilter


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

    async def requeue(self, which: JobFilter, by: By, limit: int) -> list[JobId]:
        """Give finished jobs a new life, unless another holds their unique key."""
        return await self._database.write(lambda transaction: self._requeue(transaction, which, by, limit))

    async def cancel(self, which: JobFilter, by: By, limit: int) -> list[JobId]:
        """Cancel waiting jobs, and ask running ones to stop, once."""
        return await self._database.write(lambda transaction: self.call_off(transaction, which, by, limit))

    async def run_now(self, which: JobFilter, by: By, limit: int) -> list[JobId]:
        """Make parked jobs ready, unless another holds their unique key; their waits by the clock are over."""
        return await self._database.write(lambda transaction: self._run_now(transaction, which, by, limit))

    async def reschedule(self, which: JobFilter, due_at: datetime, by: By, limit: int) -> list[JobId]:
        """Change when parked jobs come back, if they come back by themselves."""
        if due_at.tzinfo is None:
            raise ArgumentError("due_at", f"must carry a time zone, got {due_at.isoformat()}")
        return await self._database.write(lambda transaction: self._reschedule(transaction, which, due_at, by, limit))

    async def mark(self, which: JobFilter, mark: str | None, by: By, limit: int) -> list[JobId]:
        """Set a mark on jobs in any state, or remove theirs."""
        return await self._database.write(lambda transaction: self._mark(transaction, which, mark, by, limit))

    async def quiet(self, worker_ids: Sequence[WorkerId], by: By, *, quiet: bool) -> list[WorkerId]:
        """Tell running workers to stop claiming, or to claim again."""
        statement, action = ("make_quiet", "quiet") if quiet else ("make_loud", "loud")
        ids = to_document(worker_ids)

        def ask(transaction: Transaction) -> list[WorkerId]:
            params = {"ids": ids} | ({"now": transaction.now} if quiet else {})
            quiet_already = {worker_id for (worker_id,) in transaction.run(self._sql["quiet_already"], {"ids": ids})}
            asked = sorted(transaction.run(self._sql[statement], params))
            for worker_id, name in asked:
                changes = {"before": {"quiet": worker_id in quiet_already}, "after": {"quiet": quiet}}
                details = {"worker": name, "worker_id": str(worker_id), **changes}
                self._audit.write(transaction, by, Note(action=action, details=details))
            return [WorkerId(worker_id) for worker_id, _ in asked]

        return await self._database.write(ask)

    async def delete(self, which: JobFilter, by: By, limit: int) -> list[JobId]:
        """Delete jobs in any state; their children that are not final are cancelled."""
        set_aside = await self.set_aside(which, by, limit)
        chosen = JobFilter(ids=tuple(set_aside)) if set_aside else which
        return await self._database.write(lambda transaction: self._delete(transaction, chosen, by, limit))

    async def purge(self, which: JobFilter, by: By, limit: int) -> list[JobId]:
        """Delete finished jobs with all that belongs to them, but for the audit trail."""
        return await self._database.write(lambda transaction: self._purge(transaction, which, by, limit))

    def within(
        self, transaction: Transaction, action: str, params: BulkParams, which: JobFilter, by: By
    ) -> list[JobId]:
        """Apply one of the commands to jobs named by id, in an open transaction."""
        limit = len(which.ids or ())
        if action == "mark":
            return self._mark(transaction, which, params.mark, by, limit)
        if action == "reschedule" and params.due_at is not None:
            return self._reschedule(transaction, which, params.due_at, by, limit)
        command = {
            "requeue": self._requeue,
            "cancel": self.call_off,
            "run_now": self._run_now,
            "delete": self._delete,
            "purge": self._purge,
        }[action]
        return command(transaction, which, by, limit)

    async def set_aside(self, which: JobFilter, by: By, limit: int) -> list[JobId]:
        """Before a deletion: if jobs have many children that are not final, those jobs, cancelled with their children.

        Other writers get in between: the jobs are cancelled first, so that they run no more, then the children some at
        a time. If that is cut short, the jobs are there to be deleted again.
        """
        selections = self._selector.select(which, EVERY_STATE)

        def choose(transaction: Transaction) -> list[Chosen]:
            chosen = self._choose(transaction, selections, limit)
            parents = [job.job_id for job in chosen if job.is_parent]
            many = parents and self._settling.has_many_active(transaction, parents, CHILDREN_AT_ONCE)
            return chosen if many else []

        def cancel(transaction: Transaction) -> list[JobId]:
            chosen = choose(transaction)
            self._cancels.cancel(transaction, chosen, ACTIVE_PLACES, why=JOB_DELETED, by=clean(by.actor))
            self._settling.settle_set_aside(transaction, chosen, JOB_DELETED)
            return [job.job_id for job in chosen]

        if not await self._database.read(choose):
            return []
        ids = await self._database.write(cancel)
        for thin_out in (self._settling.cancel_some, self._upkeep.forget_some_children):
            some = partial(thin_out, ids, CHILDREN_AT_ONCE)
            while await self._database.write(some) == CHILDREN_AT_ONCE:
                pass
        return ids

    def call_off(self, transaction: Transaction, which: JobFilter, by: By, limit: int) -> list[JobId]:
        """As `cancel`, in a transaction that is open."""
        waiting = self._selector.select(which, ACTIVE - {JobState.RUNNING})
        running = self._selector.select(which, frozenset({JobState.RUNNING}), {"not_asked": None})
        why = clean(by.why or "")
        called_off: list[Chosen] = []
        for selection in waiting:
            chosen = self._choose(transaction, [selection], limit - len(called_off))
            if chosen:
                ids = [job.job_id for job in chosen]
                self._audit.about_command(transaction, ids, by, "cancel", after={"state": JobState.CANCELLED})
                self._cancels.cancel(transaction, chosen, [selection.place], why=why or None, by=clean(by.actor))
                called_off += chosen
        ids = [job.job_id for job in called_off]
        asked = [job.job_id for job in self._choose(transaction, running, limit - len(ids))]
        if asked:
            asked_to = {"state": JobState.RUNNING, "stop_requested": True}
            self._audit.about_command(transaction, asked, by, "cancel", after=asked_to)
            request = {"ids": to_document(asked), "now": transaction.now, "why": why or None, "by": clean(by.actor)}
            transaction.change(self._sql["ask_to_stop"], request)
        self._settle_families(transaction, called_off, why or None)
        return ids + asked

    def _requeue(self, transaction: Transaction, which: JobFilter, by: By, limit: int) -> list[JobId]:
        selections = self._selector.select(which, FINAL, {"key_free_at": transaction.now})
        chosen = self._choose(transaction, selections, limit)
        ids = self._allowed(transaction, chosen)
        if ids:
            again = {"state": JobState.READY}
            self._audit.about_command(transaction, ids, by, "requeue", before=("state", "mark"), after=again)
            document, revived = to_document(ids), set(ids)
            in_families = [job for job in chosen if job.parent is not None or job.unique is not None]
            if awaited := [job.job_id for job in in_families if job.job_id in revived]:
                self._settling.revive(transaction, awaited)
            self._upkeep.give_turns(transaction, ids)
            transaction.change(self._sql["ready_from_finished"], {"ids": document, "now": transaction.now})
            transaction.change(self._sql["leave_finished"], {"ids": document})
            transaction.change(self._sql["unmark"], {"ids": document})
        return ids

    def _run_now(self, transaction: Transaction, which: JobFilter, by: By, limit: int) -> list[JobId]:
        selections = self._selector.select(which, PARKED, {"key_free_at": transaction.now})
        ids = self._allowed(transaction, self._choose(transaction, selections, limit))
        if ids:
            ready = {"state": JobState.READY}
            self._audit.about_command(transaction, ids, by, "run_now", before=("state", "due_at"), after=ready)
            transaction.change(self._sql["waive_delay"], {"ids": to_document(ids)})
            self._upkeep.make_ready(transaction, ids, Reason.RUN_NOW)
            transaction.change(self._sql["hurry_steps"], {"ids": to_document(ids), "due_at": transaction.now})
        return ids

    def _reschedule(
        self, transaction: Transaction, which: JobFilter, due_at: datetime, by: By, limit: int
    ) -> list[JobId]:
        selections = self._selector.select(which, PARKED, {"comes_back": None})
        ids = [job.job_id for job in self._choose(transaction, selections, limit)]
        if ids:
            moved = {"due_at": due_at.isoformat()}
            self._audit.about_command(transaction, ids, by, "reschedule", before=("due_at",), after=moved)
            later = {"ids": to_document(ids), "due_at": to_micros(due_at)}
            transaction.change(self._sql["note_run_at"], later)
            transaction.change(self._sql["reschedule"], later)
            transaction.change(self._sql["hurry_steps"], later)
        return ids

    def _mark(self, transaction: Transaction, which: JobFilter, mark: str | None, by: By, limit: int) -> list[JobId]:
        ids = [job.job_id for job in self._choose(transaction, self._selector.select(which), limit)]
        if ids:
            self._audit.about_command(transaction, ids, by, "mark", before=("mark",), after={"mark": mark})
            transaction.change(self._sql["mark"], {"ids": to_document(ids), "mark": mark})
        return ids

    def _delete(self, transaction: Transaction, which: JobFilter, by: By, limit: int) -> list[JobId]:
        chosen = self._choose(transaction, self._selector.select(which, EVERY_STATE), limit)
        ids = [job.job_id for job in chosen]
        if ids:
            self._audit.about_command(transaction, ids, by, "delete", before=("state", "kind"), after=None)
            self._cancels.take_out(transaction, ids, JOB_DELETED)
            self._settling.settle_deleted(transaction, chosen, JOB_DELETED)
            self._upkeep.forget(transaction, ids)
        return ids

    def _purge(self, transaction: Transaction, which: JobFilter, by: By, limit: int) -> list[JobId]:
        ids = [job.job_id for job in self._choose(transaction, self._selector.select(which, FINAL), limit)]
        if ids:
            self._audit.about_command(transaction, ids, by, "purge", before=("state", "kind"), after=None)
            self._upkeep.forget(transaction, ids)
        return ids

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
        denied = self._keys.move(transaction, moves) if moves else set()
        return [job.job_id for job in jobs if job.job_id not in denied]

    def _settle_families(self, transaction: Transaction, cancelled: list[Chosen], why: str | None) -> None:
        in_families = [job for job in cancelled if job.parent is not None or job.is_parent]
        if in_families:
            self._settling.settle_cancelled(transaction, in_families, why)

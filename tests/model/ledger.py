"""A store in a page of plain Python: the same promises as the port, no database.

It keeps every job in one place, moves it only along `MOVES`, raises its token, and knows who holds which key. Where the
port leaves the choice to the engine (which of two equals goes first) the model does not predict: it judges the answer
and follows it. Anything it does not allow is an `AssertionError`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from perdure.clock import Clock
from perdure.domain.jobs.ids import JobId
from perdure.domain.jobs.job import Claim, Intake, JobView, NewJob, OnConflict, Receipt, UniqueKey
from perdure.domain.jobs.states import FINAL, PARKED, JobState, Reason, is_legal
from perdure.domain.jobs.transition import Transition, called_off

RECHECK: Final = timedelta(seconds=30)


@dataclass
class Entry:
    """One job as the model knows it."""

    job_id: JobId
    priority: int
    unique: UniqueKey | None
    state: JobState
    reason: Reason
    due_at: datetime | None = None
    failures: int = 0
    crashes: int = 0
    token: int = 0
    held: bool = False  # by a living claim
    unwanted: bool = False  # a cancel was requested while it runs


@dataclass
class Ledger:
    """All jobs, and who holds which key until when (None: as long as the state says)."""

    clock: Clock
    jobs: dict[JobId, Entry] = field(default_factory=dict)
    holds: dict[str, tuple[JobId, datetime | None]] = field(default_factory=dict)

    def insert(self, job: NewJob, receipt: Receipt) -> None:
        """Judge the answer to one job that was handed in."""
        holder = self._holder(job.unique.key) if job.unique else None
        if job.unique and holder and not self._passes_on(job.unique, holder):
            replaced = job.unique.on_conflict is OnConflict.REPLACE
            assert receipt == Receipt(holder.job_id, Intake.REPLACED if replaced else Intake.EXISTING)
            holder.priority = job.priority if replaced else holder.priority
            return
        assert receipt == Receipt(job.id, Intake.NEW)
        due_at = self.clock.now() + job.delay if job.delay else None
        state = JobState.SCHEDULED if due_at else JobState.READY
        entry = Entry(job.id, job.priority, job.unique, state, Reason.ENQUEUED, due_at)
        assert is_legal(None, state, Reason.ENQUEUED)
        self.jobs[job.id] = entry
        if holder and job.unique:
            del self.holds[job.unique.key]
        assert self._settle_key(entry, state)

    def refused(self, job: NewJob, holder_id: str) -> None:
        """Judge a refusal."""
        assert job.unique
        assert job.unique.on_conflict is OnConflict.REJECT
        holder = self._holder(job.unique.key)
        assert holder
        assert holder.job_id == holder_id

    def claim(self, limit: int, claims: list[Claim]) -> None:
        """Judge what was claimed: as many as wanted, none with a better one left behind, each with a higher token."""
        ready = [entry for entry in self.jobs.values() if entry.state is JobState.READY]
        assert len(claims) == min(limit, len(ready))
        for claim in claims:
            entry = self.jobs[claim.job_id]
            assert claim.token > entry.token
            assert (claim.failures, claim.crashes) == (entry.failures, entry.crashes)
            assert self._settle_key(entry, JobState.RUNNING)
            self._move(entry, JobState.RUNNING, Reason.CLAIMED)
            entry.token, entry.held = claim.token, True
        left = [entry.priority for entry in ready if entry.state is JobState.READY]
        taken = [self.jobs[claim.job_id].priority for claim in claims]
        assert not left or not taken or max(taken) <= min(left)
        assert taken == sorted(taken)

    def acknowledge(self, move: Transition, *, applied: bool) -> None:
        """Judge whether a transition was rightly applied or refused."""
        entry = self.jobs.get(move.claim.job_id)
        assert applied == bool(entry and entry.held and entry.token == move.claim.token)
        if not entry or not applied:
            return
        if entry.unwanted and move.to not in FINAL:
            move = called_off(move)
        entry.held, entry.unwanted, entry.failures, entry.crashes = False, False, move.failures, move.crashes
        if self._settle_key(entry, move.to) or move.to in FINAL:
            self._move(entry, move.to, move.reason)
            entry.due_at = self.clock.now() + move.wait if move.wait and move.to in PARKED else None
        else:
            self._move(entry, JobState.PAUSED, Reason.KEY_HELD)
            entry.due_at = self.clock.now() + RECHECK

    def promote(self, seen: dict[JobId, JobView]) -> None:
        """Judge which due jobs became ready: all whose key is free, one for each key."""
        due = [entry for entry in self.jobs.values() if entry.due_at and entry.due_at <= self.clock.now()]
        back = [entry for entry in due if seen[entry.job_id].state is JobState.READY]
        for entry in back:
            assert self._settle_key(entry, JobState.READY), "made ready although another job holds its key"
            self._move(entry, JobState.READY, Reason.DUE)
            entry.due_at = None
        for entry in due:
            if entry.state is not JobState.READY:
                assert not self._settle_key(entry, JobState.READY), "left parked although its key is free"
                entry.state, entry.reason, entry.due_at = JobState.PAUSED, Reason.KEY_HELD, self.clock.now() + RECHECK

    def requeue(self, job_id: JobId, *, done: bool) -> None:
        """Judge whether a job was rightly given a new life."""
        entry = self.jobs[job_id]
        assert done == (entry.state in FINAL and self._may_hold(entry))
        if done:
            self._settle_key(entry, JobState.READY)
            self._move(entry, JobState.READY, Reason.REQUEUED)
            entry.failures = entry.crashes = 0

    def cancel(self, job_id: JobId, *, done: bool) -> None:
        """Judge whether a job was rightly called off; one that runs is only asked."""
        entry = self.jobs[job_id]
        if entry.state is JobState.RUNNING:
            entry.unwanted = True
            return
        assert done == (entry.state not in FINAL)
        if done:
            self._settle_key(entry, JobState.CANCELLED)
            self._move(entry, JobState.CANCELLED, Reason.CANCELLED)
            entry.due_at = None

    def run_now(self, job_id: JobId, view: JobView, *, done: bool) -> None:
        """Judge whether a parked job was rightly made ready; one that may not have its key stays parked."""
        entry = self.jobs[job_id]
        assert done == (entry.state in PARKED and self._may_hold(entry))
        if done:
            self._settle_key(entry, JobState.READY)
            self._move(entry, JobState.READY, Reason.RUN_NOW)
            entry.due_at = None
        elif entry.state in PARKED:
            assert view.state in {entry.state, JobState.PAUSED}
            entry.state, entry.reason, entry.due_at = view.state, Reason(view.reason), view.due_at

    def delete(self, job_id: JobId, *, done: bool) -> None:
        """Judge a purge: only what is final, and its key with it."""
        entry = self.jobs[job_id]
        assert done == (entry.state in FINAL)
        if done:
            self._let_go(entry)
            del self.jobs[job_id]

    def prune(self) -> int:
        """Forget everything final; tell how much that was."""
        final = [entry for entry in self.jobs.values() if entry.state in FINAL]
        for entry in final:
            self.delete(entry.job_id, done=True)
        return len(final)

    def agrees_with(self, views: list[JobView]) -> None:
        """Every job stands where the model has it, and there is no other."""
        seen = {view.id: (view.state, view.reason, view.due_at, view.failures, view.crashes) for view in views}
        assert seen == {
            entry.job_id: (entry.state, entry.reason, entry.due_at, entry.failures, entry.crashes)
            for entry in self.jobs.values()
        }

    def _move(self, entry: Entry, to: JobState, reason: Reason) -> None:
        assert is_legal(entry.state, to, reason), f"{entry.state} → {to} ({reason})"
        entry.state, entry.reason = to, reason

    def _holder(self, key: str) -> Entry | None:
        job_id, until = self.holds.get(key, (None, None))
        if job_id is None or (until and until <= self.clock.now()):
            return None
        return self.jobs[job_id]

    def _passes_on(self, unique: UniqueKey, holder: Entry) -> bool:
        started = holder.state is JobState.RUNNING or holder.state in FINAL
        return unique.on_conflict is OnConflict.REPLACE and started

    def _may_hold(self, entry: Entry) -> bool:
        return not entry.unique or self._holder(entry.unique.key) in (None, entry)

    def _settle_key(self, entry: Entry, state: JobState) -> bool:
        """Take or let go of the key as the new state says; False when another job is in the way."""
        if not entry.unique:
            return True
        for_the_dead = state is JobState.DEAD and entry.unique.dead_for is not None
        if state not in entry.unique.states and not for_the_dead:
            self._let_go(entry)
            return True
        if not self._may_hold(entry):
            return False
        until = None
        if state not in entry.unique.states and entry.unique.dead_for is not None:
            until = self.clock.now() + entry.unique.dead_for
        self.holds[entry.unique.key] = (entry.job_id, until)
        return True

    def _let_go(self, entry: Entry) -> None:
        if entry.unique and self.holds.get(entry.unique.key, (None,))[0] == entry.job_id:
            del self.holds[entry.unique.key]

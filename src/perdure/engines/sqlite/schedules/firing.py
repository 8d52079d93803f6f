"""Steps of schedules: taken once, together with their jobs and the record of their nominal times (G6).

A batch of steps is one transaction of few statements: the schedules move on, what has a record already is passed over,
the jobs are made, and the records are written. Only nominal times of one schedule that depend on each other's jobs are
handled one after another.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterator, Sequence
from typing import Any

from msgspec import Struct

from perdure.domain.jobs.ids import JobId
from perdure.domain.jobs.job import NewJob
from perdure.domain.operate.audit import By
from perdure.domain.schedule import Advance, DueSchedules, Fate, Fire, Firing, Origin, Overlap, ScheduleView
from perdure.engines.shared.database.instants import from_micros, maybe_micros, to_micros
from perdure.engines.sqlite.database.database import Database
from perdure.engines.sqlite.database.rows import schedule_of, to_document
from perdure.engines.sqlite.database.transaction import Transaction
from perdure.engines.sqlite.intake.intake import IntakePart
from perdure.engines.sqlite.operate.commands.audit import Audit
from perdure.engines.sqlite.operate.commands.commands import CommandPart
from perdure.policy.consequences import NEXT_RUN_CAME
from perdure.storage.records import JobFilter


class Owed(Struct, frozen=True):
    """One nominal time to handle now."""

    step: Advance
    firing: Firing

    @property
    def asks(self) -> bool:
        """Whether it depends on the state of the schedule's last job."""
        return not self.firing.regardless and self.step.overlap in {Overlap.SKIP, Overlap.CANCEL}


class FiringPart:
    """Finds due schedules, and fires them."""

    def __init__(self, database: Database, intake: IntakePart, commands: CommandPart) -> None:
        self._database = database
        self._intake = intake
        self._commands = commands
        self._sql = database.statements("schedules/firing.sql")
        self._schedules = database.statements("schedules/schedules.sql")
        self._audit = Audit(database)

    async def due_schedules(self, limit: int, declared: Collection[str]) -> DueSchedules:
        """Schedules whose time has come, most overdue first."""
        ours = frozenset(declared)

        def look(transaction: Transaction) -> DueSchedules:
            now = from_micros(transaction.now)
            due = self._earliest(transaction, "due", ours, limit)
            coming = self._earliest(transaction, "coming", ours, 1)
            next_in = coming[0].next_at - now if coming and coming[0].next_at else None
            return DueSchedules(tuple(due), now, next_in)

        return await self._database.read(look)

    async def fire(self, advances: Sequence[Advance]) -> list[Fire]:
        """Apply these steps, each unless another process has; returns what was handled now."""
        if not advances:
            return []
        return await self._database.write(
            lambda transaction: [
                fire for steps in _apart(advances) for fire in self._fire(transaction, self._take(transaction, steps))
            ]
        )

    def _earliest(
        self, transaction: Transaction, which: str, declared: frozenset[str], limit: int
    ) -> list[ScheduleView]:
        """The earliest of those that are made or `declared`: most often all there are, so it is not asked at first."""
        view, chosen, ours, earliest = (self._schedules[name] for name in ("view", which, "ours", "earliest"))
        params: dict[str, Any] = {"now": transaction.now, "limit": limit}
        found = [schedule_of(row) for row in transaction.run(f"{view} {chosen} {earliest}", params)]
        if all(one.origin is Origin.MADE or one.name in declared for one in found):
            return found
        params["declared"] = to_document(list(declared))
        return [schedule_of(row) for row in transaction.run(f"{view} {chosen} {ours} {earliest}", params)]

    def _take(self, transaction: Transaction, steps: list[Advance]) -> list[Advance]:
        """Move schedules on; returns the steps that no other process has taken."""
        moves = []
        extra = []
        for step in steps:
            if step.expected is None:
                extra.append(step.name)
                continue
            latest = max((firing.nominal_at for firing in step.firings), default=None)
            times = (to_micros(step.expected), maybe_micros(step.next_at), maybe_micros(latest))
            moves.append((step.name, step.version, *times))
        params = {"rows": to_document(moves), "now": transaction.now}
        taken = transaction.run(self._sql["advance"], params) if moves else []
        known = transaction.run(self._sql["known"], {"names": to_document(extra)}) if extra else []
        ours = {name for (name,) in (*taken, *known)}
        return [step for step in steps if step.name in ours]

    def _fire(self, transaction: Transaction, steps: list[Advance]) -> list[Fire]:
        owed = self._unrecorded(transaction, [Owed(step, firing) for step in steps for firing in step.firings])
        made: dict[int, JobId] = {}
        for turn in _turns(owed):
            made |= self._make_jobs(transaction, {index: owed[index] for index in turn})
        fires = [_record(one, made.get(index), transaction.now) for index, one in enumerate(owed)]
        if fires:
            rows = [(fire.schedule, to_micros(fire.nominal_at), fire.fate, fire.cause, fire.job_id) for fire in fires]
            transaction.change(self._sql["record"], {"rows": to_document(rows), "now": transaction.now})
        for step in steps:
            if step.by is not None:
                self._note(transaction, step, step.by, [fire for fire in fires if fire.schedule == step.name])
        return fires

    def _note(self, transaction: Transaction, step: Advance, by: By, fires: list[Fire]) -> None:
        """Who had these jobs made, beside the schedule's regular times."""
        for cause in {fire.cause for fire in fires}:
            ids = [fire.job_id for fire in fires if fire.cause is cause and fire.job_id is not None]
            self._audit.about_jobs(transaction, ids, by, cause.action, schedule=step.name)

    def _unrecorded(self, transaction: Transaction, owed: list[Owed]) -> list[Owed]:
        """Those whose nominal time has no job yet, or no record; a nominal time that comes twice is one."""
        fresh = {(one.step.name, to_micros(one.firing.nominal_at)): one for one in reversed(owed)}
        if not fresh:
            return []
        keys = list(reversed(fresh))
        rows = [(*key, fresh[key].firing.job is not None) for key in keys]
        recorded = {index for (index,) in transaction.run(self._sql["recorded"], {"rows": to_document(rows)})}
        return [fresh[key] for index, key in enumerate(keys) if index not in recorded]

    def _make_jobs(self, transaction: Transaction, turn: dict[int, Owed]) -> dict[int, JobId]:
        """Insert the jobs of a turn, but for those that would overlap; by the index of their nominal time."""
        asking = [one.step.name for one in turn.values() if one.asks]
        unfinished: dict[str, JobId] = {}
        if asking:
            unfinished = dict(transaction.run(self._sql["unfinished"], {"names": to_document(asking)}))
        jobs: dict[int, NewJob] = {}
        for index, one in turn.items():
            last_job_id = unfinished.get(one.step.name) if one.asks else None
            if last_job_id is not None and one.step.overlap is Overlap.SKIP:
                continue
            if last_job_id is not None:
                by = By(f"schedule {one.step.name}", NEXT_RUN_CAME)
                self._commands.call_off(transaction, JobFilter(ids=(last_job_id,)), by, limit=1)
            if one.firing.job is not None:
                jobs[index] = one.firing.job
        if not jobs:
            return {}
        receipts = self._intake.insert_within(transaction, list(jobs.values()), beside_holder=True)
        made = {index: receipt.job_id for index, receipt in zip(jobs, receipts, strict=True)}
        latest = {turn[index].step.name: job_id for index, job_id in made.items()}
        transaction.change(self._sql["note_jobs"], {"rows": to_document(list(latest.items()))})
        return made


def _apart(advances: Sequence[Advance]) -> Iterator[list[Advance]]:
    """The steps in order, in batches in which each schedule comes once."""
    batch: dict[str, Advance] = {}
    for advance in advances:
        if advance.name in batch:
            yield list(batch.values())
            batch = {}
        batch[advance.name] = advance
    yield list(batch.values())


def _turns(owed: Sequence[Owed]) -> Iterator[list[int]]:
    """The indexes of those that are to get jobs, in turns: of each schedule as many as need not look at each other."""
    lines: dict[str, deque[int]] = {}
    for index, one in enumerate(owed):
        if one.firing.job is not None:
            lines.setdefault(one.step.name, deque()).append(index)
    while waiting := [line for line in lines.values() if line]:
        turn = []
        for line in waiting:
            turn.append(line.popleft())
            while line and not owed[line[0]].asks:
                turn.append(line.popleft())
        yield turn


def _record(one: Owed, job_id: JobId | None, now: int) -> Fire:
    job = one.firing.job
    fate = Fate.MISSED if job is None else Fate.OVERLAPPED if job_id is None else Fate.FIRED
    return Fire(
        schedule=one.step.name,
        nominal_at=one.firing.nominal_at,
        fate=fate,
        cause=one.firing.cause,
        at=from_micros(now),
        job_id=job_id,
        queue=None if job is None or job_id is None else job.queue,
    )

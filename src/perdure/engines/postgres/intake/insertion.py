"""The insertion of jobs as a plan, which any connection can run.

`plan_insert` knows what to ask of the database and in which order, but never talks to it: it yields statements and is
sent their rows. The store runs it on its own connections; an enqueue in the transaction of another driver runs
the very same plan there.

The primary key of `unique_hold` enforces unique keys. Keys are taken in the order of their digests, so that two
batches cannot wait for each other. A statement that lost its key to a transaction it could not see yet looks again in
a fresh snapshot; if the winner has released the key by then, the loser retries a few times, with growing waits (E1).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from msgspec import Struct

from perdure.domain.jobs.ids import JobId
from perdure.domain.jobs.job import Intake, NewJob, OnConflict, Receipt, UniqueKey
from perdure.engines.postgres.database.arrays import text_array
from perdure.engines.postgres.database.encoding import (
    CHUNK_LIMIT_CHARACTERS,
    Texts,
    encode_full,
    encode_one,
    encode_plain,
    in_chunks,
    is_plain,
    moment_text,
    seconds_text,
)
from perdure.engines.shared.own_ids import met_by_id, refuse_other_kinds, refuse_other_ref
from perdure.errors import DuplicateJobError, StoreUnavailable

_RETRY_PAUSES_SECONDS: Final = (0.01, 0.02, 0.04)
_JOBS_PER_STATEMENT: Final = 1_000

Rows = Sequence[Sequence[Any]]


class Step(Struct, frozen=True):
    """A statement to run next, after a pause of so many seconds. Parameters are `%(name)s`, all of them texts."""

    sql: str
    params: Texts
    pause: float = 0.0


Plan = Generator[Step, Rows, list[Receipt]]


def plan_insert(
    statements: Mapping[str, str],
    jobs: Sequence[NewJob],
    now: datetime | None = None,
    *,
    beside_holder: bool = False,
    parent: JobId | None = None,
) -> Plan:
    """Store these jobs: yields each statement to run, wants its rows sent in, and returns a receipt for each job.

    `statements` is `Naming(schema, prefix).statements("intake/intake.sql")`. Every parameter is a text or None and
    every column of an answer is a text or None, so that any driver will do; one that numbers its parameters replaces
    `%(name)s` by `$n`. The statements must run one after the other on one connection at READ COMMITTED; where
    `needs_transaction(jobs)` says so, inside one transaction, which is to be rolled back if the plan raises
    (DuplicateJobError, ArgumentError, StoreUnavailable). `now` replaces the database's clock: for tests.
    `beside_holder`: a job that need not hold its key yet comes in although another one does, and waits for it later.
    `parent`: the job that spawns them all.
    """
    receipts = yield from _plan_all(statements, jobs, now, parent, beside_holder=beside_holder)
    if met := met_by_id(jobs, receipts):
        stored = yield Step(statements["kinds"], {"ids": text_array([job.id for job in met])})
        refuse_other_kinds(met, dict(map(tuple, stored)))
    return receipts


def _plan_all(
    statements: Mapping[str, str],
    jobs: Sequence[NewJob],
    now: datetime | None,
    parent: JobId | None,
    *,
    beside_holder: bool,
) -> Plan:
    if all(map(is_plain, jobs)):
        if len(jobs) == 1:
            rows = yield Step(statements["insert_one"], encode_one(jobs[0], now, parent))
            return [Receipt(jobs[0].id, Intake.NEW if rows else Intake.EXISTING)]
        receipts: list[Receipt] = []
        for chunk in in_chunks(jobs):
            rows = yield Step(statements["insert_plain"], encode_plain(chunk, now, parent))
            receipts += read_plain(chunk, rows)
        return receipts
    return (yield from _FullPlan(statements, jobs, now, parent, beside_holder=beside_holder).run())


def needs_transaction(jobs: Sequence[NewJob]) -> bool:
    """Whether the plan for these jobs takes more than one statement that must hold together."""
    if len(jobs) == 1:
        unique = jobs[0].unique
        if jobs[0].plan:
            return True
        return unique is not None and (unique.on_conflict is OnConflict.REPLACE or jobs[0].ref is not None)
    return len(jobs) > _JOBS_PER_STATEMENT or not are_light(jobs) or not all(map(is_simple, jobs))


def are_light(jobs: Sequence[NewJob]) -> bool:
    """Whether one statement can carry the arguments of all of them."""
    return sum([len(job.args) for job in jobs]) <= CHUNK_LIMIT_CHARACTERS


def is_simple(job: NewJob) -> bool:
    """Whether one short statement is enough for a job, and nothing needs checking afterwards."""
    return is_plain(job) and not job.has_own_id


def read_plain(jobs: Sequence[NewJob], rows: Rows) -> list[Receipt]:
    """The receipts for one chunk of plain jobs."""
    [[_, listed]] = rows
    if listed is None:
        return [Receipt(job.id, Intake.NEW) for job in jobs]
    new = set(listed.split(","))
    receipts = []
    for job in jobs:
        receipts.append(Receipt(job.id, Intake.NEW if job.id in new else Intake.EXISTING))
        new.discard(job.id)  # the same id again in this batch
    return receipts


class _FullPlan:
    """The plan for a batch in which some jobs have a key, a fair key, a time, or a plan of their own."""

    def __init__(
        self,
        statements: Mapping[str, str],
        jobs: Sequence[NewJob],
        now: datetime | None,
        parent: JobId | None,
        *,
        beside_holder: bool,
    ) -> None:
        self._statements = statements
        self._jobs = jobs
        self._now = now
        self._parent = parent
        self._beside_holder = beside_holder
        self._receipts: dict[int, Receipt] = {}

    def run(self) -> Plan:
        first_by_key: dict[str, int] = {}
        first_by_ref: dict[str, int] = {}
        first_by_id: dict[str, int] = {}
        again: list[tuple[int, int]] = []
        fresh: list[int] = []
        for number, job in enumerate(self._jobs):
            first = first_by_id.setdefault(job.id, number)
            if first == number and job.ref is not None:
                first = first_by_ref.setdefault(job.ref, number)
                if first != number:
                    refuse_other_ref(job, self._jobs[first].kind)
            if first == number and job.unique:
                first = first_by_key.setdefault(job.unique.key, number)
            if first == number:
                fresh.append(number)
            else:
                again.append((number, first))
        position = 0
        for chunk in in_chunks([self._jobs[number] for number in fresh], _JOBS_PER_STATEMENT):
            yield from self._insert(fresh[position : position + len(chunk)])
            position += len(chunk)
        for number, first in again:
            if self._jobs[number].ref is not None and self._jobs[number].ref == self._jobs[first].ref:
                self._receipts[number] = Receipt(self._receipts[first].job_id, Intake.EXISTING)
            else:
                yield from self._repeat(number, self._receipts[first])
        yield from self._add_plans()
        return [self._receipts[number] for number in range(len(self._jobs))]

    def _add_plans(self) -> Generator[Step, Rows, None]:
        for number, job in enumerate(self._jobs):
            if job.plan and self._receipts[number].intake is Intake.NEW:
                yield self._step("add_plan", id=job.id, documents=text_array(job.plan))

    def _insert(self, numbers: Sequence[int]) -> Generator[Step, Rows, None]:
        jobs = [self._jobs[number] for number in numbers]
        rows = yield self._insertion(jobs)
        for number in numbers:
            self._receipts[number] = Receipt(self._jobs[number].id, Intake.NEW)
        unmet: list[tuple[int, UniqueKey, str | None]] = []
        by_ref = yield from self._known_refs([self._jobs[numbers[int(row[0]) - 1]] for row in rows])
        for position, known, took_key, holder in rows:
            number = numbers[int(position) - 1]
            job = self._jobs[number]
            if took_key == "true" and job.unique:  # its id came in by another way at the same moment
                yield self._step("let_go", key=job.unique.key, id=job.id)
            if job.ref in by_ref:
                self._receipts[number] = Receipt(by_ref[job.ref], Intake.EXISTING)
            elif known == "true" or took_key == "true" or job.unique is None:
                self._receipts[number] = Receipt(job.id, Intake.EXISTING)
            else:
                unmet.append((number, job.unique, holder))
        for number, unique, holder in unmet:
            self._receipts[number] = yield from self._meet(self._jobs[number], unique, holder)

    def _known_refs(self, jobs: Sequence[NewJob]) -> Generator[Step, Rows, dict[str | None, JobId]]:
        """Which jobs have the refs of these that did not come in, in a snapshot of its own."""
        refs = {job.ref: job for job in jobs if job.ref is not None}
        if not refs:
            return {}
        found = yield self._step("by_refs", refs=text_array(list(refs)))
        for ref, _, kind in found:
            refuse_other_ref(refs[ref], kind)
        return {ref: JobId(job_id) for ref, job_id, _ in found}

    def _repeat(self, number: int, first: Receipt) -> Generator[Step, Rows, None]:
        """A job whose id or key came earlier in the same batch."""
        job = self._jobs[number]
        if job.unique and job.id != first.job_id and job.unique.on_conflict is not OnConflict.RETURN:
            self._receipts[number] = yield from self._meet(job, job.unique, first.job_id)
        else:
            self._receipts[number] = Receipt(first.job_id, Intake.EXISTING)

    def _meet(self, job: NewJob, unique: UniqueKey, holder: str | None) -> Generator[Step, Rows, Receipt]:
        """Handle a key that is taken: by `holder`, or by a job that is not visible yet."""
        if unique.on_conflict is OnConflict.REPLACE:
            return (yield from self._replace(job, unique))
        for pause in (*_RETRY_PAUSES_SECONDS, None):
            if holder is None:
                rows = yield self._step("holder", key=unique.key)
                holder = rows[0][0] if rows else None
            if holder is not None:
                if unique.on_conflict is OnConflict.REJECT and holder != job.id:
                    raise DuplicateJobError(unique.key, holder)
                return Receipt(JobId(holder), Intake.EXISTING)
            if pause is not None:
                receipt, holder = yield from self._insert_alone(job, pause)
                if receipt:
                    return receipt
        raise StoreUnavailable(f"the unique key {unique.key!r} changes its holder too fast: retry")

    def _replace(self, job: NewJob, unique: UniqueKey) -> Generator[Step, Rows, Receipt]:
        """Rewrite the holder if it still waits; take the key from one that runs or has ended."""
        for pause in (0.0, *_RETRY_PAUSES_SECONDS):
            rows = yield self._step("lock_holder", key=unique.key)
            if rows:
                holder: str = rows[0][0]
                if (yield self._rewrite(holder, job)):
                    return Receipt(JobId(holder), Intake.REPLACED)
                [[gone]] = yield self._step("is_beyond_reach", id=holder)
                if gone != "true":  # it changed its place during the query
                    continue
                yield self._step("let_go", key=unique.key, id=holder)
            receipt, _ = yield from self._insert_alone(job, pause)
            if receipt:
                return receipt
        raise StoreUnavailable(f"the unique key {unique.key!r} changes its holder too fast: retry")

    def _insert_alone(self, job: NewJob, pause: float) -> Generator[Step, Rows, tuple[Receipt | None, str | None]]:
        """Retry one job; returns its receipt, or else the holder of the key."""
        rows = yield self._insertion((job,), pause)
        if not rows:
            return Receipt(job.id, Intake.NEW), None
        [[_, known, _, holder]] = rows
        if job.ref in (by_ref := (yield from self._known_refs((job,)))):
            return Receipt(by_ref[job.ref], Intake.EXISTING), None
        return (Receipt(job.id, Intake.EXISTING), None) if known == "true" else (None, holder)

    def _insertion(self, jobs: Sequence[NewJob], pause: float = 0.0) -> Step:
        params = encode_full(jobs, self._now, self._parent, beside_holder=self._beside_holder)
        return Step(self._statements["insert_full"], params, pause)

    def _rewrite(self, holder: str, job: NewJob) -> Step:
        when = {"run_at": moment_text(job.run_at), "delay": seconds_text(job.delay)}
        priority, fair_key = str(job.priority), job.fair_key
        most = None if job.max_attempts is None else str(job.max_attempts)
        limits = {"settings": job.settings, "max_attempts": most, "crash_limit": str(job.crash_limit)}
        return self._step("replace", id=holder, args=job.args, priority=priority, fair_key=fair_key, **when, **limits)

    def _step(self, name: str, **params: str | None) -> Step:
        return Step(self._statements[name], {"now": moment_text(self._now), **params})


async def follow(
    plan: Plan, run: Callable[[str, Texts], Awaitable[Rows]], pause: Callable[[float], Awaitable[None]]
) -> list[Receipt]:
    """Run a plan to its end on anything that runs statements."""
    try:
        step = next(plan)
        while True:
            if step.pause:
                await pause(step.pause)
            step = plan.send(await run(step.sql, step.params))
    except StopIteration as end:
        receipts: list[Receipt] = end.value
        return receipts

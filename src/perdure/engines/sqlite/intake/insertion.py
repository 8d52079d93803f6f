"""How jobs are inserted: a plan, the same for the store's own writer and for a connection of the caller.

A single job without special options, the most common case, is inserted without a plan: see `insert_plain`.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Any, Final

from perdure.domain.jobs.ids import JobId
from perdure.domain.jobs.job import Intake, NewJob, Receipt
from perdure.domain.jobs.states import JobState, Reason
from perdure.engines.shared.database.instants import after, span, to_micros
from perdure.engines.shared.own_ids import met_by_id, refuse_other_kinds
from perdure.engines.sqlite.database.plan import Ask, Do, Part, Plan, Statements, Turns
from perdure.engines.sqlite.database.rows import states_text, to_document
from perdure.engines.sqlite.database.transaction import Transaction
from perdure.engines.sqlite.intake.conflict import line_up, meet_holder, meet_ref, park, turn_of
from perdure.engines.sqlite.intake.fairness import Entrant, fair_turns
from perdure.errors import ArgumentError

_NUL: Final = "\\u0000"  # as JSON writes it
_ENQUEUED: Final = Reason.ENQUEUED.value


def plan_insert(
    sql: Statements, jobs: Sequence[NewJob], now: int, turns: Turns, *, beside_holder: bool = False
) -> Plan:
    """Plan the insertion of jobs; the generator's return value is their receipts, in order.

    `sql` is `database.load("intake/intake.sql", prefix)`, `now` the time in microseconds, `turns(n)` gives out the next
    n places in line (for a connection of the caller: the time itself will do). All statements of a plan must run in one
    transaction, or inside one savepoint: DuplicateJobError or ArgumentError may come after some of them have run. The
    first one writes, so that a deferred transaction takes the write lock at once instead of failing to upgrade later.

    `beside_holder`: a job that claims its unique key only in a later state comes in although another one holds it.
    """
    receipts = yield from _insert_all(sql, jobs, now, turns, beside_holder)
    if met := met_by_id(jobs, receipts):
        stored = yield Ask(sql["kinds"], {"ids": to_document([job.id for job in met])})
        refuse_other_kinds(met, dict(stored))
    return receipts


def is_plain(job: NewJob) -> bool:
    """Whether a job is ready at once, has no key of any kind, no plan, and an id that no other job can have."""
    has_key = job.unique is not None or job.fair_key is not None or job.has_own_id or job.ref is not None
    return not has_key and job.delay is None and job.run_at is None and not job.plan


def insert_plain(transaction: Transaction, sql: Statements, job: NewJob) -> Receipt:
    """Insert one plain job in a transaction of the store's own."""
    check_texts(job)
    now, turn = transaction.now, transaction.turns(1)
    if not transaction.change(sql["add_job"], _values(job, None, now, turn)):
        return Receipt(job.id, Intake.EXISTING)
    transaction.change(sql["add_ready"], (job.queue, job.priority, turn, job.id, 0, 0, now, _ENQUEUED, None))
    return Receipt(job.id, Intake.NEW)


def _insert_all(sql: Statements, jobs: Sequence[NewJob], now: int, turns: Turns, beside_holder: bool) -> Plan:
    receipts: list[Receipt] = []
    for alone, group in groupby(jobs, key=_goes_alone):
        run = list(group)
        if alone or len(run) == 1:
            for job in run:
                receipt = yield from _insert_one(sql, job, now, turns, beside_holder)
                receipts.append(receipt)
        else:
            receipts += yield from _insert_keyless(sql, run, now, turns)
    return receipts


def _goes_alone(job: NewJob) -> bool:
    return job.unique is not None or job.ref is not None or bool(job.plan)


def _insert_keyless(sql: Statements, jobs: list[NewJob], now: int, turns: Turns) -> Plan:
    """Insert jobs without unique keys and refs as one document."""
    first = {job.id: job for job in reversed(jobs)}
    distinct = jobs if len(first) == len(jobs) else list(reversed(first.values()))
    shape = _shape(distinct[0])
    alike = shape is not None and all(_shape(job) == shape for job in distinct)
    insert = _insert_alike if alike else _insert_mixed
    new = yield from insert(sql, distinct, now, turns(len(distinct)))
    if len(new) == len(jobs):
        return [Receipt(job.id, Intake.NEW) for job in jobs]
    receipts = []
    for job in jobs:
        receipts.append(Receipt(job.id, Intake.NEW if job.id in new else Intake.EXISTING))
        new.discard(job.id)
    return receipts


def _insert_alike(sql: Statements, jobs: list[NewJob], now: int, turn: int) -> Part[set[JobId]]:
    """Insert jobs that are ready at once and differ only in id and arguments; return those that are new."""
    one = jobs[0]
    ids = [job.id for job in jobs]
    document = _check_document(jobs, [(job.id, job.args) for job in jobs])
    params = {
        "rows": document,
        "now": now,
        "turn": turn,
        "kind": one.kind,
        "queue": one.queue,
        "priority": one.priority,
        "max_attempts": one.max_attempts,
        "crash_limit": one.crash_limit,
        "tags": to_document(one.tags) if one.tags else None,
        "meta": one.meta,
        "settings": one.settings,
    }
    check_texts(one)
    added = yield Do(sql["add_alike_jobs"], params)
    new = set(ids)
    if added < len(jobs):
        new = yield from _placeless(sql, document)
    lined_up = to_document(ids if len(new) == len(ids) else [job_id if job_id in new else None for job_id in ids])
    line = {"ids": lined_up, "now": now, "turn": turn, "queue": one.queue, "priority": one.priority}
    yield Do(sql["add_alike_ready"], line)
    return new


def _insert_mixed(sql: Statements, jobs: list[NewJob], now: int, turn: int) -> Part[set[JobId]]:
    """Insert jobs of many kinds, some of them for later; return those that are new."""
    rows: list[tuple[Any, ...] | None] = []
    rows += yield from _rows(sql, jobs, now, turn)
    document = _check_document(jobs, rows)
    added = yield Do(sql["add_jobs"], {"rows": document, "now": now, "turn": turn})
    new = {job.id for job in jobs}
    if added < len(rows):
        new = yield from _placeless(sql, document)
        rows = [row if row and row[0] in new else None for row in rows]  # the others keep their turns
        document = to_document(rows)
    parked = sum(1 for row in rows if row and row[5] is not None and row[5] > now)
    if parked < len(new):
        yield Do(sql["add_all_ready"], {"rows": document, "now": now, "turn": turn})
    if parked:
        yield Do(sql["add_all_parked"], {"rows": document, "now": now})
    return new


def _rows(sql: Statements, jobs: list[NewJob], now: int, newest: int) -> Part[list[tuple[Any, ...]]]:
    """The jobs as rows, with turn and key where there is a fair key; one that is for later gets its turn then."""
    rows = [_row(job, now) for job in jobs]
    entrants = [
        Entrant(job.id, job.queue, job.priority, job.fair_key)
        for job, row in zip(jobs, rows, strict=True)
        if job.fair_key is not None and (row[5] is None or row[5] <= now)
    ]
    fair = yield from fair_turns(sql, entrants, newest)
    return [
        row if job.fair_key is None else (*row, fair.get(job.id), job.fair_key)
        for job, row in zip(jobs, rows, strict=True)
    ]


def _placeless(sql: Statements, document: str) -> Part[set[JobId]]:
    rows = yield Ask(sql["placeless"], {"rows": document})
    return {job_id for (job_id,) in rows}


def _shape(job: NewJob) -> tuple[Any, ...] | None:
    """All of a job but its id and arguments; None if it has a time or a fair key of its own."""
    if job.delay is not None or job.run_at is not None or job.fair_key is not None:
        return None
    return (job.kind, job.queue, job.priority, job.max_attempts, job.crash_limit, job.tags, job.meta, job.settings)


def _insert_one(sql: Statements, job: NewJob, now: int, turns: Turns, beside_holder: bool) -> Part[Receipt]:
    """Insert one job by plain statements, and take its unique key if its first state claims it."""
    check_texts(job)
    due = _due(job, now)
    parks = due is not None and due > now
    unique = job.unique
    holds = unique is not None and (JobState.SCHEDULED if parks else JobState.READY) in unique.states
    if unique is not None and (holds or not beside_holder):
        receipt = yield from meet_holder(sql, job, unique, holds, due, now, turns)
        if receipt is not None:
            return receipt
    turn = turns(1) if parks else (yield from turn_of(sql, job, job.id, job.queue, turns))
    added = yield Do(sql["add_job"], _values(job, due, now, turn))
    if not added:
        if unique is not None and holds:
            yield Do(sql["drop_key"], {"key": unique.key, "job_id": job.id})
        known = (yield from meet_ref(sql, job)) if job.ref is not None else None
        return known or Receipt(job.id, Intake.EXISTING)
    if job.plan:
        yield Do(sql["add_plan"], {"job_id": job.id, "documents": to_document(job.plan)})
    if due is not None and parks:
        yield park(sql, job.id, job.queue, due, (0, 0), now)
    else:
        yield line_up(sql, job.id, job.queue, job.priority, turn, (0, 0, now), fair_key=job.fair_key)
    return Receipt(job.id, Intake.NEW)


def check_texts(job: NewJob) -> None:
    """Refuse, by the name of its field, text that no engine can keep: a NUL, or half a character."""
    unique = None if job.unique is None else job.unique.key
    together = f"{job.kind}{job.queue}{job.args}{job.meta}{unique}{job.fair_key}{job.ref}"
    if not job.tags and together.isascii() and "\0" not in together:
        return
    fields = (("kind", job.kind), ("queue", job.queue), ("args", job.args), ("meta", job.meta), ("unique", unique))
    keys = (("fair_key", job.fair_key), ("ref", job.ref))
    for field, text in (*fields, *keys, *(("tags", tag) for tag in job.tags)):
        if text is not None:
            check_text(field, text)


def check_text(field: str, text: str) -> None:
    """Refuse one text, by the name of its field."""
    if "\0" in text:
        raise ArgumentError(field, "contains a NUL character, which cannot be stored: remove it")
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise ArgumentError(field, f"contains half a surrogate pair, which cannot be stored: {error}") from error


def _check_document(jobs: list[NewJob], rows: Sequence[tuple[Any, ...] | None]) -> str:
    """The rows as a document; each job is checked only if the whole looks suspicious."""
    try:
        document = to_document(rows)
    except UnicodeEncodeError:
        document = _NUL
    if _NUL in document:
        for job in jobs:
            check_texts(job)
    return document


def _due(job: NewJob, now: int) -> int | None:
    if job.delay is not None:
        return after(now, job.delay)
    if job.run_at is None:
        return None
    if job.run_at.tzinfo is None:
        raise ArgumentError("run_at", f"must carry a time zone, got {job.run_at.isoformat()}")
    return to_micros(job.run_at)


def _row(job: NewJob, now: int) -> tuple[Any, ...]:
    due = None if job.delay is None and job.run_at is None else _due(job, now)
    tags = to_document(job.tags) if job.tags else None
    return (
        job.id,
        job.kind,
        job.queue,
        job.priority,
        job.args,
        due,
        job.max_attempts,
        job.crash_limit,
        tags,
        job.meta,
        job.settings,
    )


def _values(job: NewJob, due: int | None, now: int, turn: int) -> tuple[Any, ...]:
    tags = to_document(job.tags) if job.tags else None
    key, states, dead_for = None, None, None
    if job.unique is not None:
        key, states = job.unique.key, states_text(job.unique.states)
        dead_for = None if job.unique.dead_for is None else span(job.unique.dead_for)
    return (
        job.id,
        job.kind,
        job.queue,
        job.priority,
        job.args,
        now,
        due,
        job.max_attempts,
        job.crash_limit,
        key,
        states,
        dead_for,
        tags,
        job.meta,
        turn,
        job.fair_key,
        job.settings,
        job.ref,
    )

"""Intake of a job whose unique key another job holds."""

from __future__ import annotations

from perdure.domain.jobs.ids import JobId
from perdure.domain.jobs.job import Intake, NewJob, OnConflict, Receipt, UniqueKey
from perdure.domain.jobs.states import JobState, Reason
from perdure.engines.shared.own_ids import refuse_other_ref
from perdure.engines.sqlite.database.plan import Ask, Do, Part, Statements, Turns
from perdure.engines.sqlite.database.rows import states_set
from perdure.engines.sqlite.intake.fairness import Entrant, fair_turns
from perdure.errors import DuplicateJobError


def meet_holder(
    sql: Statements, job: NewJob, unique: UniqueKey, holds: bool, due: int | None, now: int, turns: Turns
) -> Part[Receipt | None]:
    """Take the key, if the job claims it yet. If another holds it, say what stands for this job; None: insert it."""
    if holds and (yield Do(sql["take_key"], {"key": unique.key, "job_id": job.id, "now": now})):
        return None
    held = yield Ask(sql["key_holder"], {"key": unique.key, "now": now})
    if not held:
        return None
    if (known := (yield from _itself(sql, job))) is not None:
        return known
    ((holder,),) = held
    if unique.on_conflict is OnConflict.REJECT:
        raise DuplicateJobError(unique.key, holder)
    if unique.on_conflict is OnConflict.RETURN:
        return Receipt(holder, Intake.EXISTING)
    if (yield from _replace(sql, holder, job, due, now, turns)):
        return Receipt(holder, Intake.REPLACED)
    if holds:
        yield Do(sql["pass_key_on"], {"key": unique.key, "job_id": job.id})
    else:
        yield Do(sql["drop_key"], {"key": unique.key, "job_id": holder})
    return None


def _itself(sql: Statements, job: NewJob) -> Part[Receipt | None]:
    """The job itself, if it was stored before under its id or its ref."""
    if (yield Ask(sql["stored"], {"job_id": job.id})):
        return Receipt(job.id, Intake.EXISTING)
    return None if job.ref is None else (yield from meet_ref(sql, job))


def meet_ref(sql: Statements, job: NewJob) -> Part[Receipt | None]:
    """The job that has this one's ref already, if there is one; that of another kind is refused."""
    found = yield Ask(sql["by_ref"], {"ref": job.ref})
    if not found:
        return None
    ((job_id, kind),) = found
    refuse_other_ref(job, kind)
    return Receipt(job_id, Intake.EXISTING)


def _replace(sql: Statements, holder: JobId, job: NewJob, due: int | None, now: int, turns: Turns) -> Part[bool]:
    """Give the holder the newcomer's arguments, priority and settings, and its time if it names one.

    False: it does not wait any more.

    Without a time the holder stays where it is, and with the same priority and fair key it keeps its place in line.
    """
    places = yield Ask(sql["waiting_place"], {"job_id": holder})
    if not places:
        return False
    ((place, queue, priority, fair_key, reason, failures, crashes, since, key, states),) = places
    later = due is not None and due > now
    target: JobState | None = None
    if place == "ready" and (later or (priority, fair_key) != (job.priority, job.fair_key)):
        target = JobState.SCHEDULED if later else JobState.READY
    elif place == "parked" and due is not None and not later:
        target = JobState.READY
    if target is not None:
        yield Do(sql[f"leave_{place}"], {"job_id": holder})
    turn = (yield from turn_of(sql, job, holder, queue, turns)) if target is JobState.READY else None
    changed = {"job_id": holder, "args": job.args, "priority": job.priority, "run_at": due, "turn": turn}
    limits = {"settings": job.settings, "max_attempts": job.max_attempts, "crash_limit": job.crash_limit}
    yield Do(sql["replace_job"], changed | limits | {"fair_key": job.fair_key})
    yield Do(sql["forget_steps"], {"job_id": holder})
    if turn is not None:
        history = (failures, crashes, min(since, now))
        yield line_up(sql, holder, queue, job.priority, turn, history, reason, job.fair_key)
    elif due is not None and target is JobState.SCHEDULED:
        yield park(sql, holder, queue, due, (failures, crashes), now)
    elif due is not None and later:
        yield Do(sql["postpone"], {"job_id": holder, "due": due})
    if target is not None and target not in states_set(states):
        yield Do(sql["drop_key"], {"key": key, "job_id": holder})
    return True


def turn_of(sql: Statements, job: NewJob, job_id: JobId, queue: str, turns: Turns) -> Part[int]:
    """The place in line for one job that enters as `job`, be it under the id and in the queue of another."""
    newest = turns(1)
    if job.fair_key is None:
        return newest
    entrant = Entrant(job_id, queue, job.priority, job.fair_key)
    return (yield from fair_turns(sql, [entrant], newest))[job_id]


def park(sql: Statements, job_id: JobId, queue: str, due: int, counts: tuple[int, int], now: int) -> Do:
    """Put a job among those that wait for their time; `counts` is failures and crashes."""
    return Do(sql["add_parked"], (job_id, queue, JobState.SCHEDULED, Reason.ENQUEUED, due, *counts, due, now))


def line_up(
    sql: Statements,
    job_id: JobId,
    queue: str,
    priority: int,
    turn: int,
    history: tuple[int, int, int],
    reason: str = Reason.ENQUEUED,
    fair_key: str | None = None,
) -> Do:
    """Put a job into its line; `history` is failures, crashes and since."""
    return Do(sql["add_ready"], (queue, priority, turn, job_id, *history, reason, fair_key))

"""`ctx.step`: a function whose completed call is never repeated (E3).

Its result is stored before the handler gets it; from then on the stored result is returned instead of a call. A failing
function may have retries of its own: they are counted across restarts, and use no attempt of the job. After the last of
them the error is raised in the handler, and the job's own retry decides; an optional step is given up instead (E4).
"""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from perdure.domain.flows.flow import StepKind, StepRecord, StepState
from perdure.domain.jobs.outcome import Failed, Parked, Permanent
from perdure.domain.jobs.states import Reason
from perdure.errors import StepError
from perdure.events import StepGivenUp
from perdure.flows.calling import Calling
from perdure.flows.journal import Journal
from perdure.flows.results import read, reader, written
from perdure.flows.step_gates import StepGate
from perdure.policy.failures import MESSAGE_LIMIT_CHARACTERS, storable
from perdure.policy.retries.retry import RetrySource, read_policy
from perdure.policy.retries.triage import classify


async def take_step(
    journal: Journal,
    key: str,
    calling: Calling,
    *,
    optional: bool = False,
    retry: RetrySource | None = None,
    gate: StepGate | None = None,
) -> Any:
    """The result of a step: stored, or made now and then stored. None for an optional one that was given up."""
    async with journal.busy():
        record = await journal.find(key, StepKind.CALL)
        while record is None or record.state is StepState.BEGUN:
            if record is not None and record.due_at is not None and retry is not None:
                note = f"step {key}: {record.note}"
                await journal.wait(record.due_at, Parked(Reason.STEP_FAILED.value, note=note))
            record = await _tried(journal, key, calling, record, optional=optional, retry=retry, gate=gate)
        if record.state is StepState.GIVEN_UP:
            if not optional:
                raise StepError(
                    key,
                    f"was optional when it gave up ({record.note}), and is not optional now;"
                    " give the new step another name, or enqueue the job again",
                )
            journal.warn(f"step {key}", f"step {key} gave up: {record.note}")
            return None
        return read(key, record.result, calling.function)


async def _tried(
    journal: Journal,
    key: str,
    calling: Calling,
    record: StepRecord | None,
    *,
    optional: bool,
    retry: RetrySource | None,
    gate: StepGate | None,
) -> StepRecord:
    """Call the function once; returns the new status of the step, which is stored."""
    reader(key, calling.function)  # refuse an unreadable type before the call
    if record is None:
        record = StepRecord(key=key, kind=StepKind.CALL, state=StepState.BEGUN, begun_at=journal.now)
    try:
        result = await (calling.once(journal) if gate is None else gate.try_once(journal, calling))
    except StepError:
        raise
    except Exception as error:
        if journal.in_transaction:  # a stored try would be rolled back, and repeated for ever
            raise
        record = _after_failure(journal, record, error, optional=optional, retry=retry)
        if record.state is StepState.BEGUN and record.due_at is None:
            if retry is not None:
                await journal.save(record)
            raise
    else:
        text = written(key, result)
        read(key, text, calling.function)
        record = replace(
            record, state=StepState.DONE, result=text, tries=record.tries + 1, due_at=None, note=record.note
        )
    await journal.save(record)
    if record.state is StepState.GIVEN_UP:
        claim = journal.claim
        await journal.emit(StepGivenUp(claim.job_id, claim.kind, key, record.tries, record.note or ""))
    return record


def _after_failure(
    journal: Journal, record: StepRecord, error: Exception, *, optional: bool, retry: RetrySource | None
) -> StepRecord:
    """The stored record of a failed try. Without a time for the next one, the error is to be raised."""
    outcome = classify(error, journal.triage, now=journal.now)
    if not isinstance(outcome, Failed | Permanent):  # a verdict about the whole job, not the step
        return replace(record, due_at=None)
    note, tries = journal.without_secrets(storable(str(outcome.failure), MESSAGE_LIMIT_CHARACTERS)), record.tries + 1
    if retry is not None and isinstance(outcome, Failed):
        rule = read_policy(retry).for_error(outcome.kinds)
        if rule is not None and not rule.is_last(tries - 1):
            now = journal.now
            wait = rule.wait(tries - 1, now - record.begun_at, journal.random, outcome.retry_after)
            if wait is not None:
                return replace(record, note=note, tries=tries, due_at=now + wait)
    if optional:
        return replace(record, state=StepState.GIVEN_UP, note=note, tries=tries, due_at=None)
    return replace(record, note=note, tries=0, due_at=None, begun_at=journal.now)  # the next attempt has all tries

"""`ctx.sleep`, `ctx.wait_for` and `ctx.approval`: waits that hold no worker and outlive every restart.

A wait is kept with its due time when it is first met, so that however often the handler is run again, it waits once. An
event that was emitted before anybody waited is found at once; one that comes between the look and the park makes the
job ready at once, which the engine sees to.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from msgspec.structs import replace

from perdure.domain.duration import format_duration
from perdure.domain.flows.approval import approval_asked
from perdure.domain.flows.flow import StepKind, StepRecord, StepState
from perdure.domain.jobs.outcome import Parked
from perdure.domain.jobs.states import Reason
from perdure.errors import EventTimeout
from perdure.flows.journal import Journal
from perdure.flows.results import read


async def sleep(journal: Journal, key: str, span: timedelta) -> None:
    """Go on after so much time, counted from when the sleep was first met."""
    async with journal.busy():
        record = await journal.find(key, StepKind.SLEEP)
        if record is None:
            now = journal.now
            record = StepRecord(key=key, kind=StepKind.SLEEP, state=StepState.BEGUN, due_at=now + span, begun_at=now)
            await journal.save(record)
        if record.state is StepState.BEGUN:
            if record.due_at is not None:
                await journal.wait(record.due_at, Parked(Reason.SLEEPING.value))
            await journal.save(replace(record, state=StepState.DONE))


async def wait_for(journal: Journal, key: str, event: str, within: timedelta | None, wanted: type | None) -> Any:
    """The payload of an event, once somebody has emitted it; EventTimeout if nobody has in time.

    Whether it came in time is settled once for each life of the job: a requeued one waits again.
    """
    async with journal.busy():
        record = await journal.find(key, StepKind.EVENT)
        if record is not None and record.begun_at < journal.claim.since and record.state is StepState.BEGUN:
            record = None
        if record is None or (record.state is StepState.BEGUN and record.note is None):
            record = await _awaited(journal, key, event, within, record)
        if record.state is StepState.BEGUN:
            waited = record.begun_at if record.due_at is None else record.due_at
            question = approval_asked(journal.claim.job_id, event)
            raise EventTimeout(event, format_duration(waited - record.begun_at), question)
        return read(key, record.result, wanted)


async def _awaited(
    journal: Journal, key: str, event: str, within: timedelta | None, record: StepRecord | None
) -> StepRecord:
    """The step once it is settled, which is kept; or the handler is left."""
    emission = await journal.ask("look for an event", lambda store: store.emitted(event))
    now, is_kept = journal.now, record is not None
    if record is None:
        due = None if within is None else now + within
        record = StepRecord(key=key, kind=StepKind.EVENT, state=StepState.BEGUN, due_at=due, begun_at=now)
    if emission is not None:
        record = replace(record, state=StepState.DONE, result=emission.payload)
    elif record.due_at is not None and record.due_at <= now:
        record = replace(record, note="it did not come in time")
    else:
        if not is_kept:
            await journal.save(record)
        after = None if record.due_at is None else max(record.due_at - journal.now, timedelta(0))
        await journal.park(Parked(Reason.AWAITING_EVENT.value, after, event=event))
    await journal.save(record)
    return record

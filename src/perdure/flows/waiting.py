"""`ctx.sleep`, `ctx.wait_for` and `ctx.approval`: waits that occupy no worker and survive every restart.

A wait is stored with its due time on the first call, so that it is waited for once, no matter how often the handler
runs. An event emitted earlier is found at once; for an event emitted between the check and the park, the engine makes
the job ready at once.
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
    """Continue after this time, counted from the first call of the sleep."""
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
    """The payload of an event, once it is emitted; EventTimeout if it is not emitted in time.

    Whether it arrived in time is decided once for each life of the job: a requeued job waits again.
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
    """The step once it is settled, which is stored; or the job is parked."""
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

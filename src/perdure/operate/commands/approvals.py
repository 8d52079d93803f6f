"""What jobs ask of people, and wait for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace

from perdure.domain.flows.approval import APPROVAL, approval_asked, approval_event
from perdure.domain.flows.flow import StepKind, StepRecord, StepState
from perdure.domain.jobs.ids import JobId
from perdure.domain.jobs.job import JobView
from perdure.domain.jobs.states import JobState
from perdure.operate.records import Asking
from perdure.storage.port import Store
from perdure.storage.records import JobFilter, Page

_PAGE: Final = 500
_WAITING: Final = frozenset({JobState.WAITING})


async def who_asks(store: Store, which: JobFilter) -> list[Asking]:
    """What the jobs that match ask, the newest job first. Looks through all that wait, page by page."""
    aim, found = replace(which, states=_WAITING), list[Asking]()
    before: JobId | None = None
    while True:
        batch = await store.jobs(aim, Page(_PAGE, before))
        steps = await waits_of(store, [job.id for job in batch if job.also_awaits])
        for job in batch:
            found += await _questions(store, job, steps.get(job.id, []))
        if len(batch) < _PAGE:
            return found
        before = batch[-1].id


async def _questions(store: Store, job: JobView, waits: Sequence[StepRecord]) -> list[Asking]:
    """What one job asks: that for which it is parked, and others that nobody has answered yet."""
    name = approval_asked(job.id, (job.awaits or "").removeprefix("event:"))
    own = [step for step in waits if step.key == f"{APPROVAL}{name}"]
    asked = [] if name is None else [Asking(job, name, own[0].due_at if own else job.due_at)]
    for step in waits:
        other = step.key.removeprefix(APPROVAL)
        if other in (name, step.key) or await store.emitted(approval_event(job.id, other)) is not None:
            continue
        asked.append(Asking(job, other, step.due_at))
    return asked


async def asked_by(store: Store, job_id: JobId) -> list[str]:
    """The names of what a job has asked and nobody has answered, in the order of asking."""
    return _asked((await waits_of(store, [job_id])).get(job_id, []))


async def waits_of(store: Store, ids: Sequence[JobId]) -> dict[JobId, list[StepRecord]]:
    """What these jobs wait for, from events to children, in the order in which they began to."""
    kept = await store.steps(ids) if ids else {}
    return {job_id: [step for step in steps if _is_wait(step)] for job_id, steps in kept.items()}


def _is_wait(step: StepRecord) -> bool:
    return step.state is StepState.BEGUN and step.kind in {StepKind.EVENT, StepKind.FAMILY}


def _asked(steps: Sequence[StepRecord]) -> list[str]:
    return [step.key.removeprefix(APPROVAL) for step in steps if step.key.startswith(APPROVAL)]

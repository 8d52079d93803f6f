"""Questions of jobs that wait for a person's answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace

from perdure.domain.flows.approval import APPROVAL, approval_asked, approval_event
from perdure.domain.flows.flow import StepKind, StepRecord, StepState
from perdure.domain.jobs.ids import JobId
from perdure.domain.jobs.job import JobView
from perdure.domain.jobs.states import JobState
from perdure.errors import ConflictError
from perdure.operate.masking import shown_job
from perdure.operate.records import Asking
from perdure.operate.wording import listed
from perdure.storage.port import Store
from perdure.storage.records import JobFilter, Page

_JOBS_PER_CALL: Final = 500
_WAITING: Final = frozenset({JobState.WAITING})


async def who_asks(store: Store, which: JobFilter, most: int | None = None) -> list[Asking]:
    """The open questions of matching jobs, the newest job first; `most`: of at most this many jobs that ask."""
    found, before = list[Asking](), None
    while True:
        asking = await store.asking(min(most or _JOBS_PER_CALL, _JOBS_PER_CALL), before)
        ids = asking if which.ids is None else [job_id for job_id in asking if job_id in which.ids]
        batch = await store.jobs(replace(which, ids=ids, states=_WAITING), Page(len(ids))) if ids else []
        steps = await waits_of(store, [job.id for job in batch if job.also_awaits])
        for job in batch:
            found += await _questions(store, shown_job(job), steps.get(job.id, []))
        if not asking or most is not None:
            return found
        before = asking[-1]


async def _questions(store: Store, job: JobView, waits: Sequence[StepRecord]) -> list[Asking]:
    """The open questions of one job: the one it is parked for, and others."""
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
    """The names of a job's open questions, in the order of asking."""
    return _asked((await waits_of(store, [job_id])).get(job_id, []))


async def check_asked(store: Store, job: JobView, name: str) -> None:
    """Raise ConflictError if a job does not ask this now; its name may be misspelled."""
    asked = await asked_by(store, job.id)
    if name in asked or job.awaits == f"event:{approval_event(job.id, name)}":
        return
    open_ = f"it asks {listed(map(repr, asked))}" if asked else "it asks nothing now"
    raise ConflictError(
        f"job {job.id} does not ask {name!r}: {open_}; to answer before it asks, use `--ahead`, in the API `ahead`"
    )


async def waits_of(store: Store, ids: Sequence[JobId]) -> dict[JobId, list[StepRecord]]:
    """What these jobs wait for (events, children and so on), in the order in which the waits began."""
    kept = await store.steps(ids) if ids else {}
    return {job_id: [step for step in steps if _is_wait(step)] for job_id, steps in kept.items()}


def _is_wait(step: StepRecord) -> bool:
    return step.state is StepState.BEGUN and step.kind in {StepKind.EVENT, StepKind.FAMILY}


def _asked(steps: Sequence[StepRecord]) -> list[str]:
    return [step.key.removeprefix(APPROVAL) for step in steps if step.key.startswith(APPROVAL)]

"""Dry runs of pauses and of their end: which jobs would be held, which released. They only read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from perdure.domain.gate import Pause
from perdure.domain.jobs.ids import JobId
from perdure.domain.jobs.states import ACTIVE, JobState, Reason
from perdure.policy.limits.pausing import covers
from perdure.storage.port import Store
from perdure.storage.records import JobFilter, Page

EXAMPLES_SHOWN: Final = 5
_JOBS_COUNTED: Final = 10_000
_JOBS_READ: Final = 500
_TO_HOLD: Final = ACTIVE - {JobState.RUNNING}
_HELD: Final = frozenset({JobState.PAUSED})
_ENDS: Final = (" ", ":", ",")  # what may follow the id of a pause in the reason of a job


class Foreseen(Struct, frozen=True, kw_only=True):
    """The dry run of a pause or of its end: how many jobs it would hold or make ready, and the newest of them.

    `capped`: there may be more.
    """

    pauses: tuple[Pause, ...]
    jobs: int
    capped: bool
    examples: tuple[JobId, ...]


async def foresee_pause(store: Store, pause: Pause) -> Foreseen:
    """What a pause would hold: unfinished jobs that are not running. Those with arguments are checked one by one."""
    which = JobFilter(queue=pause.queue, kind=pause.kind, states=_TO_HOLD)
    if pause.args is None:
        [tally] = await store.count(which, (), _JOBS_COUNTED)
        newest = await store.jobs(which, Page(EXAMPLES_SHOWN))
        return _foreseen((pause,), [job.id for job in newest], jobs=tally.jobs, capped=tally.capped)
    found = await store.jobs(which, Page(_JOBS_READ))
    held = [job.id for job in found if covers(pause, job.queue, job.kind, job.args)]
    return _foreseen((pause,), held, jobs=len(held), capped=len(found) == _JOBS_READ)


async def foresee_resume(store: Store, pauses: Sequence[Pause]) -> Foreseen:
    """Which held jobs would become ready; ready jobs of a paused queue are not among them."""
    openings = tuple(f"{Reason.ON_HOLD}: pause {pause.id}{end}" for pause in pauses for end in _ENDS)
    found = await store.jobs(JobFilter(states=_HELD), Page(_JOBS_READ)) if pauses else []
    held = [job.id for job in found if f"{job.reason} ".startswith(openings)]
    return _foreseen(tuple(pauses), held, jobs=len(held), capped=len(found) == _JOBS_READ)


def _foreseen(pauses: tuple[Pause, ...], newest: Sequence[JobId], *, jobs: int, capped: bool) -> Foreseen:
    return Foreseen(pauses=pauses, jobs=jobs, capped=capped, examples=tuple(newest[:EXAMPLES_SHOWN]))

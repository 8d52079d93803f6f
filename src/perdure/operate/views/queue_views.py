"""An overview of each queue: waiting and running jobs, its workers, and how attempts ended recently.

Nothing here counts all jobs of a queue: beyond the cap a number is a lower bound, and the wait of the oldest job is
read from the front of the line.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from datetime import datetime
from typing import Final

from msgspec import Struct

from perdure.domain.duration import Duration
from perdure.domain.gate import Pause
from perdure.domain.jobs.states import PARKED, JobState
from perdure.domain.operate.statistics import Group, Statistics
from perdure.domain.worker import WorkerView
from perdure.operate.health.checkup import ASSUMED_LEASE
from perdure.operate.views.statistics import empty_group, read_statistics, read_trends
from perdure.storage.port import Store
from perdure.storage.records import JobFilter, Tally

_SHOWN: Final = JobFilter(states=PARKED | {JobState.READY, JobState.RUNNING, JobState.DEAD})
_JOBS_PER_FRONT: Final = 10  # jobs read in each priority to find the one that waits longest


class QueueView(Struct, frozen=True, kw_only=True):
    """One queue. Capped numbers are lower bounds.

    `workers` is how many serve the queue, of those whose heartbeat is fresh; `slots` is how many jobs these may run at
    once, of all their queues. `paused`: the queue is paused as a whole; `pauses` are all that name it.
    """

    name: str
    ready: int
    ready_capped: bool
    oldest_ready_at: datetime | None
    running: int
    slots: int
    workers: int
    parked: dict[JobState, int]
    parked_capped: bool
    dead: int
    dead_capped: bool
    paused: bool
    pauses: tuple[Pause, ...]
    statistics: Group


async def queue_views(store: Store, span: Duration, cap: int, *, times: bool = True) -> list[QueueView]:
    """All queues that have jobs, workers, pauses or statistics, by name; `times`: points have wait and run times."""
    lately, tallies, known, pauses, now = await asyncio.gather(
        read_statistics(store, span, by="queue") if times else _trends(store, span),
        store.count(_SHOWN, ("queue", "state"), cap),
        store.workers(),
        store.pauses(),
        store.now(),
    )
    workers = [worker for worker in known if worker.dead_at is None]
    living = [worker for worker in workers if now - worker.beat_at <= ASSUMED_LEASE]
    ready = {tally.queue for tally in tallies if tally.queue is not None and tally.state is JobState.READY}
    oldest = await _oldest(store, ready)
    groups = {group.queue: group for group in lately.groups if group.queue is not None}
    names = {
        *groups,
        *(tally.queue for tally in tallies if tally.queue is not None),
        *(queue for worker in workers for queue in worker.queues),
        *(pause.queue for pause in pauses if pause.queue is not None),
    }
    return [
        _view(
            name,
            [tally for tally in tallies if tally.queue == name],
            [worker for worker in living if name in worker.queues],
            tuple(pause for pause in pauses if pause.queue == name),
            oldest.get(name),
            groups.get(name) or empty_group(lately, queue=name),
        )
        for name in sorted(names)
    ]


async def _trends(store: Store, span: Duration) -> Statistics:
    return await read_trends(store, span, await store.now(), by="queue")


async def _oldest(store: Store, queues: set[str]) -> dict[str, datetime]:
    oldest: dict[str, datetime] = {}
    for front in await store.fronts(sorted(queues), _JOBS_PER_FRONT) if queues else ():
        oldest[front.queue] = min(front.since, oldest.get(front.queue, front.since))
    return oldest


def _view(
    name: str,
    tallies: Iterable[Tally],
    workers: list[WorkerView],
    pauses: tuple[Pause, ...],
    oldest: datetime | None,
    statistics: Group,
) -> QueueView:
    by_state = {tally.state: tally for tally in tallies if tally.state is not None}
    jobs = {state: tally.jobs for state, tally in by_state.items()}
    capped = {state for state, tally in by_state.items() if tally.capped}
    return QueueView(
        name=name,
        ready=jobs.get(JobState.READY, 0),
        ready_capped=JobState.READY in capped,
        oldest_ready_at=oldest,
        running=jobs.get(JobState.RUNNING, 0),
        slots=sum(worker.concurrency for worker in workers),
        workers=len(workers),
        parked={state: jobs[state] for state in sorted(PARKED) if jobs.get(state)},
        parked_capped=bool(capped & PARKED),
        dead=jobs.get(JobState.DEAD, 0),
        dead_capped=JobState.DEAD in capped,
        paused=any(pause.kind is None and pause.args is None for pause in pauses),
        pauses=pauses,
        statistics=statistics,
    )

"""What an operator should know about a pause: names that nothing uses yet, and other pauses of the same jobs."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from difflib import get_close_matches
from typing import Final

from msgspec import Struct

from perdure.domain.gate import Pause
from perdure.storage.port import Store
from perdure.storage.records import JobFilter, Page, Reach

_NEWEST_JOBS: Final = 200
_REACH: Final = Reach(10_000, timedelta(seconds=1))


class PauseCheck(Struct, frozen=True):
    """`unknown`: a sentence about each name that nothing uses yet. `others`: pauses that hold the same jobs too."""

    unknown: tuple[str, ...]
    others: tuple[Pause, ...]


async def check_pause(store: Store, pause: Pause) -> PauseCheck:
    """Check a pause that is in force or planned. Names are never refused: jobs may come later."""
    unknown = []
    if pause.queue is not None and pause.queue not in (queues := await _queues(store)):
        unknown.append(f"no job, schedule or running worker uses queue {pause.queue!r} yet{_near(pause.queue, queues)}")
    if pause.kind is not None and pause.kind not in (kinds := await _kinds(store)) and await _has_none(store, pause):
        unknown.append(f"no job or schedule is of kind {pause.kind!r} yet{_near(pause.kind, kinds)}")
    others = tuple(other for other in await store.pauses() if other.id != pause.id and _holds_all_of(other, pause))
    return PauseCheck(tuple(unknown), others)


async def _queues(store: Store) -> set[str]:
    return {
        *(count.queue for count in await store.counts(cap=1)),
        *(queue for worker in await store.workers() if worker.dead_at is None for queue in worker.queues),
        *(view.schedule.queue for view in await store.schedules()),
    }


async def _kinds(store: Store) -> set[str]:
    return {
        *(record.name for record in await store.kinds()),
        *(view.schedule.kind for view in await store.schedules()),
        *(job.kind for job in await store.jobs(JobFilter(), Page(_NEWEST_JOBS))),
    }


async def _has_none(store: Store, pause: Pause) -> bool:
    """Whether no job is of this kind, as far as a short search can tell."""
    found = await store.search(JobFilter(kind=pause.kind), Page(1), _REACH)
    return not found.jobs and found.behind is None


def _near(name: str, known: Iterable[str]) -> str:
    near = get_close_matches(name, sorted(known), 2)
    return f"; did you mean {' or '.join(map(repr, near))}?" if near else ""


def _holds_all_of(other: Pause, pause: Pause) -> bool:
    """Whether another pause holds every job that this one holds."""
    return other.queue in {None, pause.queue} and other.kind in {None, pause.kind} and other.args in {None, pause.args}

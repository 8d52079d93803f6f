"""Priorities that age, so that nothing starves behind a stream of more urgent jobs.

A job that waits gains one level of priority for each `ageing` of its wait. In other words: it goes before a more urgent
job that became due later by more than `ageing` for each level between them. The store still returns jobs by priority;
about once a second this class reads the next job of each priority, and where one has aged past the most urgent, up to a
quarter of what is claimed from that queue is taken from there first. In a queue that was empty nothing has aged: the
next job for an idle worker is claimed without a look. A queue may also seem empty because jobs whose key is held are
not handed out: so not all looks in a row are spared.

Two workers that check at the same moment may both take the aged job's place, and so one of them a job that has not
quite aged. The wait counts from when the job first became due, so its retries do not send it back to the beginning.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from datetime import timedelta
from itertools import groupby
from typing import Final

from perdure.storage.claims import ClaimStore
from perdure.storage.records import Front, Wanted

LOOK_INTERVAL_SECONDS: Final = 1.0
JOBS_PER_FRONT: Final = 50  # aged jobs that one look can find in a priority
SHARE_FOR_AGED: Final = 0.25
LOOKS_SPARED: Final = 10  # looks in a row at one queue


class Ageing:
    """Finds, for each queue, the priority that has aged past the most urgent one, and how many of its jobs have."""

    def __init__(self, store: ClaimStore, ageing: timedelta, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._store = store
        self._ageing = ageing
        self._monotonic = monotonic
        self._last_look = float("-inf")
        self._aged: dict[str, Wanted] = {}
        self._credit: dict[str, float] = {}
        self._emptied: set[str] = set()
        self._spared: Counter[str] = Counter()

    def note_empty(self, queues: Iterable[str]) -> None:
        """Note queues that are empty: their next job is claimed without a look at the ages."""
        self._emptied.update(queues)

    async def divide(self, wanted: Sequence[Wanted]) -> list[Wanted]:
        """Divide what is claimed of each queue: part of it comes from its aged priority, if it has one."""
        is_due = self._monotonic() - self._last_look >= LOOK_INTERVAL_SECONDS
        if is_due and (queues := [want.queue for want in wanted if not self._spares(want.queue)]):
            fronts = await self._store.fronts(queues, JOBS_PER_FRONT)
            self._last_look = self._monotonic()
            self._aged = {want.queue: want for want in aged(fronts, self._ageing)}
            self._credit = {queue: self._credit.get(queue, 1.0) for queue in self._aged}
        self._emptied.difference_update([want.queue for want in wanted])
        return [part for want in wanted for part in self._parts(want)] if self._aged else list(wanted)

    def _spares(self, queue: str) -> bool:
        if queue in self._emptied and self._spared[queue] < LOOKS_SPARED:
            self._spared[queue] += 1
            return True
        self._spared[queue] = 0
        return False

    def _parts(self, want: Wanted) -> list[Wanted]:
        found = self._aged.get(want.queue)
        if found is None:
            return [want]
        credit = self._credit[want.queue] + want.limit * SHARE_FOR_AGED
        first = min(int(credit), found.limit, want.limit)
        self._credit[want.queue] = min(credit, 1.0 + want.limit) - first
        if first == found.limit:
            del self._aged[want.queue]
        else:
            self._aged[want.queue] = Wanted(want.queue, found.limit - first, found.level)
        parts = (Wanted(want.queue, first, found.level), Wanted(want.queue, want.limit - first))
        return [part for part in parts if part.limit]


def aged(fronts: Iterable[Front], ageing: timedelta) -> list[Wanted]:
    """For each queue the priority whose first job has aged past that of the most urgent one, and how many have."""
    found = []
    for queue, of_queue in groupby(fronts, key=lambda front: front.queue):
        levels = [list(level) for _, level in groupby(of_queue, key=lambda front: front.priority)]
        rank = _ranking(ageing)
        urgent = rank(levels[0][0])
        oldest = min(levels, key=lambda level: rank(level[0]))
        if rank(oldest[0]) < urgent:
            found.append(Wanted(queue, sum(rank(front) < urgent for front in oldest), oldest[0].priority))
    return found


def _ranking(ageing: timedelta) -> Callable[[Front], float]:
    """The rank of a job with its wait counted: the lowest goes first. It does not change while jobs wait."""
    level = ageing.total_seconds()
    return lambda front: front.since.timestamp() + front.priority * level

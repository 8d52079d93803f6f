"""How much more a worker can take, queue by queue.

Free capacity is shared among the queues by weight. A queue that returned less than its share counts as empty for this
round, and its share goes to the others at once, so that weights matter only where there is more work than capacity.
During a slow start the capacity is the current value of the ramp. A reserved queue has its own slots, which are not
part of that capacity.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from perdure.storage.records import Wanted
from perdure.worker.claiming.slow_start import SlowStart
from perdure.worker.settings import Queue


class Slots:
    """Counts running jobs, and divides the free slots among the queues."""

    def __init__(
        self, queues: Sequence[Queue], concurrency: int, batch: int, slow_start: SlowStart | None = None
    ) -> None:
        self._queues = tuple(queue for queue in queues if not queue.reserved)
        self._reserved = {queue.name: queue for queue in queues if queue.reserved}
        self._concurrency = concurrency
        self._batch = batch
        self._slow_start = slow_start
        self._running: Counter[str] = Counter()
        self._empty: set[str] = set()
        self.total = 0
        self.paused: frozenset[str] = frozenset()
        """Queues that are not asked for now."""

    def take(self, queue: str, number: int = 1) -> None:
        """So many more jobs of this queue run."""
        self._running[queue] += number
        self.total += 0 if queue in self._reserved else number

    def release(self, queue: str, number: int = 1) -> None:
        """So many jobs of this queue have ended."""
        self._running[queue] -= number
        self.total -= 0 if queue in self._reserved else number

    def look_again(self) -> None:
        """Forget which queues were empty."""
        self._empty.clear()

    def note_taken(self, wanted: Iterable[Wanted], taken: Counter[str]) -> list[str]:
        """Remember which queues gave less than was wanted, and return them."""
        empty = [want.queue for want in wanted if taken[want.queue] < want.limit]
        self._empty.update(empty)
        return empty

    def wanted(self) -> list[Wanted]:
        """What to ask the store for now: empty when there is no capacity, or no queue left to ask."""
        wanted = [Wanted(queue.name, min(room, self._batch)) for queue, room in self._asked(self._reserved.values())]
        free = min(self._limit() - self.total, self._batch)
        asked = self._asked(self._queues)
        if free <= 0 or not asked:
            return wanted
        weights = sum(queue.weight for queue, _ in asked)
        for queue, room in sorted(asked, key=lambda pair: -pair[0].weight):
            share = min(room, -(-free * queue.weight // weights))
            weights -= queue.weight
            if share > 0:
                wanted.append(Wanted(queue.name, share))
                free -= share
        return wanted

    def is_limited(self) -> bool:
        """Whether more jobs could be claimed if a job ended, or if a ramp grew."""
        return self.total >= self._limit() or any(
            (limit := self._limit_of(queue)) is not None and self._running[queue.name] >= limit
            for queue in (*self._queues, *self._reserved.values())
        )

    def _asked(self, queues: Iterable[Queue]) -> list[tuple[Queue, int]]:
        """Those of these queues that may have jobs, each with the room that it has for them."""
        return [
            (queue, room)
            for queue in queues
            if queue.name not in self._empty and queue.name not in self.paused and (room := self._room(queue))
        ]

    def _room(self, queue: Queue) -> int:
        limit = self._limit_of(queue)
        return self._concurrency if limit is None else max(limit - self._running[queue.name], 0)

    def _limit(self) -> int:
        if self._slow_start is None:
            return self._concurrency
        return self._slow_start.limit(self._concurrency)

    def _limit_of(self, queue: Queue) -> int | None:
        if self._slow_start is None or not self._slow_start.holds_back(queue.name):
            return queue.concurrency
        return self._slow_start.limit(queue.concurrency or self._concurrency, queue.name)

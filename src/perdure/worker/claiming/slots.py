"""How much more a worker can take, queue by queue.

Free capacity is shared among the queues by weight. A queue that gave less than its share is taken to be empty for this
round, and its share goes to the others at once, so that weights matter only where there is more work than capacity.
While a worker starts slowly its capacity is what the ramp allows by now.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from perdure.storage.records import Wanted
from perdure.worker.claiming.slow_start import SlowStart
from perdure.worker.settings import Queue


class Slots:
    """Counts what runs, and divides what is free."""

    def __init__(
        self, queues: Iterable[Queue], concurrency: int, batch: int, slow_start: SlowStart | None = None
    ) -> None:
        self._queues = tuple(queues)
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
        self.total += number

    def release(self, queue: str, number: int = 1) -> None:
        """So many jobs of this queue have ended."""
        self._running[queue] -= number
        self.total -= number

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
        free = min(self._limit() - self.total, self._batch)
        asked = [
            (queue, room)
            for queue in self._queues
            if queue.name not in self._empty and queue.name not in self.paused and (room := self._room(queue))
        ]
        if free <= 0 or not asked:
            return []
        weights = sum(queue.weight for queue, _ in asked)
        wanted = []
        for queue, room in sorted(asked, key=lambda pair: -pair[0].weight):
            share = min(room, -(-free * queue.weight // weights))
            weights -= queue.weight
            if share > 0:
                wanted.append(Wanted(queue.name, share))
                free -= share
        return wanted

    def is_limited(self) -> bool:
        """Whether more would be asked for if something ended, or if a ramp went on."""
        return self.total >= self._limit() or any(
            (limit := self._limit_of(queue)) is not None and self._running[queue.name] >= limit
            for queue in self._queues
        )

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

"""Rolls statistics up, and deletes expired ones. Every worker tries; the first one finds the work."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from perdure.events import Emitter
from perdure.lifecycle.loops.loop import Loop
from perdure.storage.operate.statistics import MINUTES_AT_ONCE, StatisticStore
from perdure.storage.records import Keep

_ROWS_PER_CALL: Final = 5_000
_WAIT_AFTER_WORK: Final = timedelta(milliseconds=50)


class StatisticsKeeper(Loop[bool]):
    """Runs in batches, so that a long backlog never holds a lock for long."""

    name = "statistics keeper"
    interval = timedelta(seconds=30)

    def __init__(self, store: StatisticStore, emitter: Emitter, keep: Keep) -> None:
        super().__init__(emitter)
        self._store = store
        self._keep = keep

    async def tick(self) -> bool:
        """Roll up and delete one batch each; whether there may be more."""
        rolled = await self._store.roll_up_statistics()
        forgotten = await self._store.forget_statistics(self._keep, _ROWS_PER_CALL)
        return rolled >= MINUTES_AT_ONCE or forgotten >= _ROWS_PER_CALL

    def next_wait(self, did: bool) -> timedelta:
        """Soon again while there is a backlog."""
        return _WAIT_AFTER_WORK if did else self.interval

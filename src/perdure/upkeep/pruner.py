"""Deletes finished jobs and logged events after their retention time."""

from __future__ import annotations

from datetime import timedelta

from perdure.events import Emitter, JobsPruned
from perdure.lifecycle.loops.loop import Loop
from perdure.storage.port import Store
from perdure.storage.records import Keep

_ROWS_PER_CALL = 1_000


class Pruner(Loop[int]):
    """Runs in batches, so that a long backlog never holds a lock for long."""

    name = "pruner"
    interval = timedelta(minutes=1)

    def __init__(self, store: Store, emitter: Emitter, keep: Keep) -> None:
        super().__init__(emitter)
        self._store = store
        self._keep = keep

    async def tick(self) -> int:
        """Delete one batch of jobs and of events, and fingerprint dead letters; returns the largest count."""
        pruned = await self._store.prune(self._keep, _ROWS_PER_CALL)
        if pruned:
            self.emitter.emit(JobsPruned(pruned))
        forgotten = await self._store.forget_events(_ROWS_PER_CALL)
        return max(pruned, forgotten, await self._store.fingerprint_dead(_ROWS_PER_CALL))

    def next_wait(self, did: int) -> timedelta:
        """Soon again while there is a backlog."""
        return timedelta(milliseconds=50) if did >= _ROWS_PER_CALL else self.interval

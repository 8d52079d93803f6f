"""Forgets what no gate counts any more, and sets free jobs that are held by a pause which is gone."""

from __future__ import annotations

from datetime import timedelta

from perdure.events import Emitter
from perdure.lifecycle.loop import Loop
from perdure.storage.gates import GateStore

_BATCH = 5_000
_BACKLOG = 500


class GateSweeper(Loop[int]):
    """Runs in batches, so that a long backlog never holds a lock for long."""

    name = "gate sweeper"
    interval = timedelta(seconds=30)

    def __init__(self, store: GateStore, emitter: Emitter) -> None:
        super().__init__(emitter)
        self._store = store

    async def tick(self) -> int:
        """Sweep once; how many rows that took."""
        return await self._store.forget_gates(_BATCH)

    def next_wait(self, did: int) -> timedelta:
        """Soon again while there is a backlog."""
        return timedelta(milliseconds=50) if did >= _BACKLOG else self.interval

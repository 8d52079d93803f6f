"""Deletes what no gate counts any more, sums spends, and releases jobs that a deleted pause holds."""

from __future__ import annotations

from datetime import timedelta

from perdure.events import Emitter
from perdure.lifecycle.loops.loop import Loop
from perdure.storage.gates import GateStore

_ROWS_PER_CALL = 5_000
_SPENDS_PER_CALL = 1_000  # each is rewritten, which takes longer than a look
_BACKLOG_ROWS = 500
_MANY_ROWS = 50


class GateSweeper(Loop[int]):
    """Runs in batches, so that a long backlog never holds a lock for long."""

    name = "gate sweeper"
    interval = timedelta(seconds=30)

    def __init__(self, store: GateStore, emitter: Emitter) -> None:
        super().__init__(emitter)
        self._store = store

    async def tick(self) -> int:
        """Sweep once; returns how many rows that took."""
        return await self._store.sum_spends(_SPENDS_PER_CALL) + await self._store.forget_gates(_ROWS_PER_CALL)

    def next_wait(self, did: int) -> timedelta:
        """At once while there is a backlog, and soon where much is spent: every gate reads spends not summed yet."""
        if did >= _BACKLOG_ROWS:
            return timedelta(milliseconds=50)
        return timedelta(seconds=3) if did >= _MANY_ROWS else self.interval

"""Wakes jobs that wait for a unique key as soon as its holder has released it.

This is best effort: a job that is not woken checks again by itself, every 30 seconds. Parents whose children joined a
job with a key are woken at its end in the same way; the promoter looks for missed ones every second.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from perdure.domain.jobs.ids import JobId
from perdure.domain.jobs.states import FINAL
from perdure.domain.jobs.transition import Transition
from perdure.events import Emitter, StoreTrouble
from perdure.storage.fleet.upkeep import UpkeepStore
from perdure.worker.recording.collector import Collector

_ITEMS_PER_CALL: Final = 1_000


class FreedKeys:
    """Watches written transitions. `on_due`: jobs may be due now. `on_ready`: jobs may be ready now."""

    def __init__(
        self, store: UpkeepStore, emitter: Emitter, on_due: Callable[[], None], on_ready: Callable[[], None]
    ) -> None:
        self._store = store
        self._emitter = emitter
        self._on_due = on_due
        self._on_ready = on_ready
        self._keys: Collector[str] = Collector(self._hasten, _ITEMS_PER_CALL)
        self._ended: Collector[JobId] = Collector(self._settle_joined, _ITEMS_PER_CALL)

    def recorded(self, moves: Sequence[Transition]) -> None:
        """These transitions are written: some of their jobs have released their keys."""
        keyed = [(move.claim.unique, move.to) for move in moves if move.claim.unique is not None]
        self._keys.add([unique.key for unique, state in keyed if state not in unique.states])
        self._ended.add([move.claim.job_id for move in moves if move.claim.unique is not None and move.to in FINAL])

    async def drain(self) -> None:
        """Wait until all wake-ups so far were sent."""
        await self._keys.drain()
        await self._ended.drain()

    async def close(self) -> None:
        """Wake nothing more."""
        await self._keys.close()
        await self._ended.close()

    async def _settle_joined(self, job_ids: list[JobId]) -> None:
        try:
            if await self._store.settle_joined(job_ids):
                self._on_ready()
        except Exception as error:  # noqa: BLE001 - the promoter checks again
            self._emitter.emit(StoreTrouble("settle joined", f"{type(error).__name__}: {error}", 0.0))

    async def _hasten(self, keys: list[str]) -> None:
        try:
            if await self._store.hasten(set(keys)):
                self._on_due()
        except Exception as error:  # noqa: BLE001 - waiting jobs check again by themselves
            self._emitter.emit(StoreTrouble("hasten", f"{type(error).__name__}: {error}", 0.0))

"""A job that waits for a unique key looks again as soon as the job that held the key has let it go.

That is best effort: one that nobody tells looks again by itself, every 30 seconds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from perdure.domain.transition import Transition
from perdure.events import Emitter, StoreTrouble
from perdure.storage.port import UpkeepStore
from perdure.worker.collector import Collector

_BATCH: Final = 1_000


class FreedKeys:
    """Hears of what was written. `on_due`: jobs may be due by now."""

    def __init__(self, store: UpkeepStore, emitter: Emitter, on_due: Callable[[], None]) -> None:
        self._store = store
        self._emitter = emitter
        self._on_due = on_due
        self._keys: Collector[str] = Collector(self._hasten, _BATCH)

    def recorded(self, moves: Sequence[Transition]) -> None:
        """These are written: some of them hold their keys no longer."""
        keyed = [(move.claim.unique, move.to) for move in moves if move.claim.unique is not None]
        self._keys.add([unique.key for unique, state in keyed if state not in unique.states])

    async def settle(self) -> None:
        """Wait until everybody was told who is to be told by now."""
        await self._keys.settle()

    async def close(self) -> None:
        """Tell nobody more."""
        await self._keys.close()

    async def _hasten(self, keys: list[str]) -> None:
        try:
            if await self._store.hasten(set(keys)):
                self._on_due()
        except Exception as error:  # noqa: BLE001 - who waits looks again by itself
            self._emitter.emit(StoreTrouble("hasten", f"{type(error).__name__}: {error}", 0.0))

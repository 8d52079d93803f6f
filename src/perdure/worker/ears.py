"""Hears that there is work: a wake-up is a hint, and without ears a worker is only slow."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from perdure.events import Emitter, StoreRecovered, StoreTrouble
from perdure.policy.patience import Patience
from perdure.storage.port import SignalStore


class Ears:
    """Listens for wake-ups until its task is cancelled, whatever goes wrong."""

    def __init__(self, store: SignalStore, emitter: Emitter, wake: Callable[[], None]) -> None:
        self._store = store
        self._emitter = emitter
        self._wake = wake

    async def run(self) -> None:
        """Pass on every wake-up."""
        patience = Patience()
        while True:
            try:
                async with self._store.wakeups() as wakeups:
                    if failures := patience.succeeded():
                        self._emitter.emit(StoreRecovered("listen", failures))
                    self._wake()  # for what came between the last look and now
                    async for _ in wakeups:
                        self._wake()
            except Exception as error:  # noqa: BLE001 - without ears the worker is slow, and must not stay so
                wait = patience.failed().total_seconds()
                self._emitter.emit(StoreTrouble("listen", f"{type(error).__name__}: {error}", wait))
                await asyncio.sleep(wait)
            else:
                return

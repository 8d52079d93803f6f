"""The one periodic loop: every background task is a `tick()` that returns what it did.

The loop brings the rest: no tick overlaps another, each has a time limit, an error never ends the loop (database
trouble is met with patience, C4), and a wake-up brings the next tick forward. Tests call `tick()` and never wait.
"""

from __future__ import annotations

import asyncio
import random
from abc import ABC, abstractmethod
from contextlib import suppress
from datetime import timedelta
from typing import Generic, TypeVar

from perdure.errors import StoreError
from perdure.events import Emitter, LoopFailed, StoreRecovered, StoreTrouble
from perdure.policy.patience import Patience

Did = TypeVar("Did")
_SPREAD = 0.1


class Loop(ABC, Generic[Did]):
    """A task that comes round: at once, then every `interval` (± 10 %), or sooner when woken."""

    name: str
    interval: timedelta
    limit: timedelta = timedelta(minutes=2)

    def __init__(self, emitter: Emitter) -> None:
        self.emitter = emitter
        self._patience = Patience()
        self._wake = asyncio.Event()
        self._stopping = False

    @abstractmethod
    async def tick(self) -> Did:
        """Do the work once."""

    def next_wait(self, did: Did) -> timedelta:
        """How long to wait after a tick that did this; the interval unless a loop knows better."""
        del did
        return self.interval

    def wake(self) -> None:
        """Bring the next tick forward to now."""
        self._wake.set()

    async def run(self) -> None:
        """Tick until stopped."""
        while not self._stopping:
            self._wake.clear()
            wait = await self._guarded_tick()
            spread = random.uniform(1 - _SPREAD, 1 + _SPREAD)  # noqa: S311 - spreads load, hides nothing
            with suppress(TimeoutError):
                await asyncio.wait_for(self._wake.wait(), wait.total_seconds() * spread)

    def stop(self) -> None:
        """End after the tick that is under way, if any."""
        self._stopping = True
        self._wake.set()

    async def _guarded_tick(self) -> timedelta:
        try:
            async with asyncio.timeout(self.limit.total_seconds()):
                did = await self.tick()
        except StoreError as error:
            wait = self._patience.failed()
            self.emitter.emit(StoreTrouble(self.name, str(error), wait.total_seconds()))
            return wait
        except Exception as error:  # noqa: BLE001 - a loop outlives whatever its tick raises
            self.emitter.emit(LoopFailed(self.name, f"{type(error).__name__}: {error}"))
            return self.interval
        if failures := self._patience.succeeded():
            self.emitter.emit(StoreRecovered(self.name, failures))
        return self.next_wait(did)

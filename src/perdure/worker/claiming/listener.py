"""Listens for wake-ups. A wake-up is a hint: without it a worker is only slower."""

from __future__ import annotations

from collections.abc import Callable

from perdure.events import Emitter
from perdure.lifecycle.outage import ANY_ERROR, Outage
from perdure.policy.outage_backoff import DEFAULT_OUTAGE, OutageLimits
from perdure.storage.fleet.signals import SignalStore


class WakeupListener:
    """Listens for wake-ups until its task is cancelled; errors are retried."""

    def __init__(
        self,
        store: SignalStore,
        emitter: Emitter,
        wake: Callable[[], None],
        outage: OutageLimits = DEFAULT_OUTAGE,
    ) -> None:
        self._store = store
        self._wake = wake
        self._outage = Outage("listen", emitter, outage)

    async def run(self) -> None:
        """Pass on every wake-up."""
        await self._outage.outlast(self._listen, ANY_ERROR)  # without wake-ups the worker is slow

    async def _listen(self) -> None:
        async with self._store.wakeups() as wakeups:
            self._outage.succeeded()
            self._wake()  # for what came between the last look and now
            async for _ in wakeups:
                self._wake()

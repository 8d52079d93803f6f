"""The one way in which background work meets a database that fails (C4).

Each caller of the database has an `Outage` of its own. It counts errors in a row, reports each of them with the wait
that follows, and reports the first success after them. How many errors are met with a short wait, and how long the
longest wait is, comes from `WorkerSettings`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import ClassVar, Final, TypeVar

from perdure.errors import StoreRefused, StoreUnavailable
from perdure.events import Emitter, StoreRecovered, StoreTrouble
from perdure.lifecycle.timer import REAL_TIMER, Timer, pause
from perdure.policy.outage_backoff import DEFAULT_OUTAGE, OutageLimits, Patience

T = TypeVar("T")

AWAY: Final = (StoreUnavailable, StoreRefused)
"""The database does not answer, or takes nothing: the same call may succeed later."""
ANY_ERROR: Final = (Exception,)
"""For work that must be done in the end, whatever an engine raises."""


class Outage:
    """Errors in a row of one caller; `what` names the caller in events. Tests replace `timer`."""

    timer: ClassVar[Timer] = REAL_TIMER

    def __init__(self, what: str, emitter: Emitter, limits: OutageLimits = DEFAULT_OUTAGE) -> None:
        self._what = what
        self._emitter = emitter
        self._patience = Patience(limits)

    @property
    def failures(self) -> int:
        """How many errors there were in a row; 0: the last call succeeded."""
        return self._patience.failures

    def use(self, limits: OutageLimits) -> None:
        """Apply other limits from the next error on."""
        self._patience.limits = limits

    def failed(self, error: Exception) -> float:
        """Count and report an error; how many seconds to wait before the next try."""
        wait = self._patience.failed().total_seconds()
        self._emitter.emit(StoreTrouble(self._what, f"{type(error).__name__}: {error}", wait))
        return wait

    def succeeded(self) -> None:
        """Forget the errors, and report the recovery if there were any."""
        if failures := self._patience.succeeded():
            self._emitter.emit(StoreRecovered(self._what, failures))

    async def wait_out(self, error: Exception) -> None:
        """Count and report an error, and wait until the next try."""
        await self.rest(self.failed(error))

    async def rest(self, seconds: float) -> None:
        """Wait."""
        await pause(self.timer, asyncio.Event(), seconds)

    async def outlast(self, call: Callable[[], Awaitable[T]], errors: tuple[type[Exception], ...] = AWAY) -> T:
        """Call until none of these errors is raised. The call must be safe to repeat."""
        while True:
            try:
                answer = await call()
            except errors as error:
                await self.wait_out(error)
                continue
            self.succeeded()
            return answer

"""How all background work retries while the database fails (C4).

Each caller of the database has its own `Outage`. It counts consecutive errors, reports each of them with the wait that
follows, and reports the first success after them. `WorkerSettings` says how many errors have a short wait, and how long
the longest wait is.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import ClassVar, Final, TypeVar

from perdure.errors import StoreRefused, StoreUnavailable
from perdure.events import Emitter, StoreRecovered, StoreTrouble
from perdure.lifecycle.timer import REAL_TIMER, Timer, pause
from perdure.policy.outage_backoff import DEFAULT_OUTAGE, OutageBackoff, OutageLimits

T = TypeVar("T")

AWAY: Final = (StoreUnavailable, StoreRefused)
"""The database does not answer, or accepts no writes: the same call may succeed later."""
ANY_ERROR: Final = (Exception,)
"""Any error of an engine: for work that must be done in the end."""


class Outage:
    """Consecutive errors of one caller; `what` names the caller in events. Tests replace `timer`."""

    timer: ClassVar[Timer] = REAL_TIMER

    def __init__(self, what: str, emitter: Emitter, limits: OutageLimits = DEFAULT_OUTAGE) -> None:
        self._what = what
        self._emitter = emitter
        self._backoff = OutageBackoff(limits)

    @property
    def failures(self) -> int:
        """The number of consecutive errors; 0: the last call succeeded."""
        return self._backoff.failures

    def use(self, limits: OutageLimits) -> None:
        """Apply other limits from the next error on."""
        self._backoff.limits = limits

    def failed(self, error: Exception) -> float:
        """Count and report an error; returns the seconds to wait before the next try."""
        wait = self._backoff.failed().total_seconds()
        self._emitter.emit(StoreTrouble(self._what, f"{type(error).__name__}: {error}", wait))
        return wait

    def succeeded(self) -> None:
        """Forget the errors, and report the recovery if there were any."""
        if failures := self._backoff.succeeded():
            self._emitter.emit(StoreRecovered(self._what, failures))

    async def wait_out(self, error: Exception) -> None:
        """Count and report an error, and wait until the next try."""
        await self._rest(self.failed(error))

    async def outlast(
        self,
        call: Callable[[], Awaitable[T]],
        errors: tuple[type[Exception], ...] = AWAY,
        *,
        on_error: Callable[[Exception, float], None] | None = None,
        stop: Callable[[], bool] | None = None,
    ) -> T:
        """Call until none of these errors is raised. The call must be safe to repeat.

        `on_error` gets each error and the seconds until the next try. `stop` is asked after each error, before and
        after the wait: once it returns True the error is raised. Other errors are raised at once.
        """
        while True:
            try:
                answer = await call()
            except errors as error:
                wait = self.failed(error)
                if on_error is not None:
                    on_error(error, wait)
                if stop is None or not stop():
                    await self._rest(wait)
                if stop is not None and stop():
                    raise
            else:
                self.succeeded()
                return answer

    async def _rest(self, seconds: float) -> None:
        await pause(self.timer, asyncio.Event(), seconds)

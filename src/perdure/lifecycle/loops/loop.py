"""The one periodic loop: every background task is a `tick()` that returns what it did.

The loop does the rest. Ticks come at a fixed rate, and never overlap: one that comes due while the previous still runs
is skipped, reported and counted (A17); after a long tick the next comes at its regular time, not in a burst. Each tick
has a limit. Past it the tick is told to stop; one that does not stop, such as a function in a thread, is abandoned, and
every further tick is skipped until it has ended. An error never ends the loop; database errors are retried with backoff
(C4). A wake-up brings the next tick forward.

A stopped loop ends after its current tick. A cancelled loop tells its tick to stop, and abandons it after a second.
Tests call `tick()` and never wait, or replace `timer`.
"""

from __future__ import annotations

import asyncio
import logging
import random
from abc import ABC, abstractmethod
from datetime import timedelta
from functools import cached_property
from typing import Final, Generic, TypeVar

from perdure.errors import StoreError
from perdure.events import Emitter, LoopFailed, LoopOverran, LoopSkipped
from perdure.lifecycle.loops.tick import Tick
from perdure.lifecycle.outage import Outage
from perdure.lifecycle.timer import REAL_TIMER, Timer, pause
from perdure.policy.outage_backoff import OutageLimits
from perdure.policy.retries.jitter import Jitter, Randomness

Did = TypeVar("Did")
DEFAULT_JITTER: Final = Jitter.ratio(0.1)

_log = logging.getLogger("perdure.loop")


class Loop(ABC, Generic[Did]):
    """A periodic task: at once, or after the first interval, then every `interval`, or sooner when woken."""

    name: str
    interval: timedelta
    limit: timedelta = timedelta(minutes=2)
    at_start: bool = True
    jitter: Jitter = DEFAULT_JITTER
    is_patient: bool = True
    """Whether database errors are retried with backoff; otherwise they are errors like any other."""
    timer: Timer = REAL_TIMER

    def __init__(self, emitter: Emitter) -> None:
        self.emitter = emitter
        self.ticks = 0
        self.failed = 0
        self.skipped = 0
        self._chance: Randomness = random.Random()  # noqa: S311 - spreads load, hides nothing
        self._stir = asyncio.Event()
        self._tick: Tick | None = None
        self._due = 0.0
        self._woken = False
        self._stopping = False

    @abstractmethod
    async def tick(self) -> Did:
        """Do the work once."""

    def next_wait(self, did: Did) -> timedelta:
        """The wait after a tick that did this; by default the interval."""
        del did
        return self.interval

    def is_wanted(self) -> bool:
        """Whether a due tick should run; one that should not is not counted."""
        return True

    @property
    def running_since(self) -> float | None:
        """When the current tick began, on the monotonic clock; None: there is none."""
        return None if self._tick is None or self._tick.ended is not None else self._tick.since

    @cached_property
    def _outage(self) -> Outage:
        return Outage(self.name, self.emitter)  # a loop may set its name after `__init__`

    def use_outage(self, limits: OutageLimits) -> None:
        """Apply these limits to database errors."""
        self._outage.use(limits)

    def wake(self) -> None:
        """Bring the next tick forward to now, or to the end of the current one; a backoff is waited out first."""
        self._woken = True
        self._stir.set()

    def stop(self) -> None:
        """End after the current tick, if any."""
        self._stopping = True
        self._stir.set()

    async def run(self) -> None:
        """Tick until stopped."""
        self._due = self.timer.monotonic() + (0.0 if self.at_start else self._drawn(self.interval))
        try:
            while True:
                self._stir.clear()
                wait = self._look()
                if self._stopping and self._tick is None:
                    return
                await pause(self.timer, self._stir, wait)
        finally:
            if self._tick is not None:
                await self._tick.call_off()  # an abandoned one still counts as running

    def _look(self) -> float:
        """Run what is due; returns the time until something may be due again."""
        now = self.timer.monotonic()
        if self._tick is not None:
            self._watch(self._tick, now)
        if self._tick is None and not self._stopping and self._is_due(now):
            self._begin(now)
        deadline = float("inf") if self._tick is None else self._tick.deadline
        return min(deadline, float("inf") if self._stopping else self._due) - now

    def _is_due(self, now: float) -> bool:
        return now >= self._due or (self._woken and not self._outage.failures)

    def _begin(self, now: float) -> None:
        if self._woken and now < self._due:
            self._due = now
        self._woken = False
        self._pass(now)
        if self.is_wanted():
            self.ticks += 1
            self._tick = Tick(self._once(), self.name, self.limit, self.timer, self._stir.set)

    async def _once(self) -> timedelta:
        try:
            return self.next_wait(await self.tick())
        except SystemExit as error:  # asyncio would end the whole process
            raise RuntimeError(f"the tick called sys.exit({error.code!r})") from error

    def _watch(self, tick: Tick, now: float) -> None:
        over = now if tick.ended is None else tick.ended
        if not self._stopping and (skipped := self._pass(over)):
            self.skipped += skipped
            self.emitter.emit(LoopSkipped(self.name, round(over - tick.since, 3), self.skipped))
        if tick.ended is not None:
            self._tick = None
            self._conclude(tick, tick.ended)
        elif now >= tick.deadline:
            if tick.overran:
                tick.give_up()
                self.emitter.emit(LoopOverran(self.name, self.limit.total_seconds(), stopped=False))
            else:
                tick.stop()

    def _conclude(self, tick: Tick, ended: float) -> None:
        """Report the outcome of a tick, and set the time of the next if that is not the regular one."""
        if tick.overran:
            self.failed += 1
            if not tick.given_up:
                self.emitter.emit(LoopOverran(self.name, self.limit.total_seconds(), stopped=True))
            if (error := tick.error()) is not None:
                _log.error("%s failed after its limit", self.name, exc_info=error)
            return
        try:
            wait = tick.result()
        except StoreError as error:
            self.failed += 1
            if not self.is_patient:
                self._emit_failed(error)
                return
            wait = timedelta(seconds=self._outage.failed(error))
            self._due = ended + self._drawn(wait)
        except BaseException as error:  # noqa: BLE001 - a loop survives every error of its tick
            self.failed += 1
            self._emit_failed(error)
        else:
            self._outage.succeeded()
            if wait != self.interval:
                self._due = ended + wait.total_seconds()

    def _emit_failed(self, error: BaseException) -> None:
        _log.error("%s failed", self.name, exc_info=error)
        self.emitter.emit(LoopFailed(self.name, f"{type(error).__name__}: {error}"))

    def _pass(self, until: float) -> int:
        """Skip the regular times up to then; returns how many there were."""
        step = self.interval.total_seconds()
        passed = max(int((until - self._due) // step), 0)  # many at once after a long standstill
        self._due += passed * step
        while self._due <= until:
            self._due += self._drawn(self.interval)
            passed += 1
        return passed

    def _drawn(self, wait: timedelta) -> float:
        return self.jitter.apply(wait, self._chance).total_seconds()

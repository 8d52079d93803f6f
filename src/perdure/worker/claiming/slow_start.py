"""✿ How a worker opens: its concurrency grows step by step, and it polls more often at first (C2, C3).

The ramps run once, from the moment the worker has opened. A worker that loses its lease and registers again does not
restart them: its process is warm, outside systems have handled its full load before, and its jobs come back by the ramp
of their queue. If it is still opening, the ramp continues by the clock.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Final

from msgspec import Struct

from perdure.clock import Clock
from perdure.events import Emitter, WorkerOpening
from perdure.lifecycle.loops.loop import Loop
from perdure.policy.opening import Opening, poll_interval, slow_start_limit
from perdure.worker.settings import WorkerSettings

_ALL: Final = ""  # the name of all queues together
_GROWTH_INTERVAL: Final = timedelta(milliseconds=100)


class Ramp(Struct, frozen=True):
    """The limit of jobs at once grows from 1 to `full` over this time, for one queue or (no name) for all together."""

    queue: str
    full: int
    over: timedelta


class SlowStart:
    """How many jobs may run at once, while a worker opens and afterwards."""

    def __init__(self, settings: WorkerSettings, clock: Clock) -> None:
        self._clock = clock
        self._opened: float | None = None
        self._spans = {_ALL: settings.slow_start}
        self._spans |= {queue.name: queue.slow_start for queue in settings.queues if queue.slow_start}
        sizes = {queue.name: queue.concurrency or settings.concurrency for queue in settings.queues}
        sizes[_ALL] = settings.concurrency
        self.ramps = tuple(
            Ramp(queue, sizes[queue], span) for queue, span in self._spans.items() if span and sizes[queue] > 1
        )

    def begin(self) -> None:
        """Start the ramps: the worker is open."""
        self._opened = self._clock.monotonic()

    @property
    def open_for(self) -> timedelta:
        """How long the worker has been open."""
        if self._opened is None:
            return timedelta(0)
        return timedelta(seconds=self._clock.monotonic() - self._opened)

    @property
    def is_over(self) -> bool:
        """Whether every ramp is at its end."""
        return all(self.open_for >= ramp.over for ramp in self.ramps)

    def holds_back(self, queue: str) -> bool:
        """Whether this queue has its own ramp."""
        return queue in self._spans

    def limit(self, full: int, queue: str = _ALL) -> int:
        """How much of `full` is allowed now."""
        return slow_start_limit(full, self._spans[queue], self.open_for)


class Opener(Loop[bool]):
    """Follows the ramps: wakes the fetcher as they grow, and emits an event whenever a limit has doubled."""

    name = "opener"
    interval = timedelta(seconds=1)

    def __init__(
        self,
        worker: str,
        slow_start: SlowStart,
        emitter: Emitter,
        on_growth: Callable[[], None],
        on_full: Callable[[], None],
    ) -> None:
        super().__init__(emitter)
        self._worker = worker
        self._slow_start = slow_start
        self._on_growth = on_growth
        self._on_full = on_full
        self._limits = dict.fromkeys(slow_start.ramps, 0)
        self._reported = dict.fromkeys(slow_start.ramps, 0)

    async def tick(self) -> bool:
        """Apply the current limits; the tick that finds every ramp at its end is the last."""
        is_over = self._slow_start.is_over
        limits = {ramp: self._slow_start.limit(ramp.full, ramp.queue) for ramp in self._slow_start.ramps}
        if limits != self._limits:
            self._limits = limits
            self._emit_growth()
            self._on_growth()
        if is_over:
            self._on_full()
            self.stop()
        return is_over

    def next_wait(self, did: bool) -> timedelta:
        """Soon: steps may be short."""
        del did
        return _GROWTH_INTERVAL

    def _emit_growth(self) -> None:
        for ramp, limit in self._limits.items():
            reported = self._reported[ramp]
            if limit >= 2 * reported or limit == ramp.full > reported:
                self._reported[ramp] = limit
                self.emitter.emit(WorkerOpening(self._worker, ramp.queue, limit, ramp.full))


class Pace:
    """How many seconds a worker waits for a wake-up before it polls; None: it does not poll."""

    def __init__(self, settings: WorkerSettings, slow_start: SlowStart, finished: Callable[[], int]) -> None:
        self._settings = settings
        self._slow_start = slow_start
        self._finished = finished

    def __call__(self) -> float | None:
        """The wait before the next poll."""
        settings = self._settings
        wait = poll_interval(settings.polling, settings.poll, self._finished(), self._slow_start.open_for)
        return None if wait is None else wait.total_seconds()


def openings(settings: WorkerSettings) -> Callable[[str], Opening | None]:
    """How jobs of dead workers come back, by queue; the worker's setting also covers queues that it does not serve."""
    own = {queue.name: queue.opening for queue in settings.queues if queue.opening}
    return lambda queue: own.get(queue, settings.opening)
